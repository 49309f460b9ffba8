// A custom model: a small network with a skip connection, trained on sin(a + b).
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "engine/nn/network_oracle.h"

// y = W3 (h + tanh(W2 h)), h = tanh(W1 x)
gradwire::Network skip_network(std::size_t inputs, std::size_t width) {
  gradwire::Network net;
  const auto first = net.linear(inputs, width), second = net.linear(width, width),
             last = net.linear(width, 1);
  const auto h = tanh(affine(first, net.features(inputs)));
  mean_squared_error(affine(last, h + tanh(affine(second, h))));
  return net;
}

// 1,000 points (a, b) with targets sin(a + b).
class Angles final : public gradwire::Examples<float> {
 public:
  Angles() {
    for (int i = 0; i < 1000; ++i) {
      const float a = std::fmod(0.618f * i, 2.0f) - 1, b = std::fmod(0.414f * i, 2.0f) - 1;
      x_.insert(x_.end(), {a, b});
      y_.push_back(std::sin(a + b));
    }
  }
  std::size_t size() const override { return y_.size(); }
  gradwire::Example<float> operator[](std::size_t i) const override {
    gradwire::Example<float> example;
    example.features = {&x_[2 * i], 2};
    example.targets = {&y_[i], 1};
    return example;
  }

 private:
  std::vector<float> x_, y_;
};

int main() {
  const gradwire::Network net = skip_network(2, 16);
  gradwire::NetworkOracle<float> oracle(net, std::make_unique<Angles>());
  const std::vector<double> start = net.start(1);
  std::vector<float> x(start.begin(), start.end()), gradient(x.size());
  float loss = 0;
  for (int step = 0; step < 2000; ++step) {
    loss = oracle.loss_and_gradient(x, {}, gradient);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] -= 0.1f * gradient[j];
  }
  std::printf("%zu parameters, mean squared error %g\n", x.size(), static_cast<double>(loss));
  return loss < 1e-3f ? 0 : 1;
}
