// A custom loss: the Huber loss, with its derivative from a tape. One outlier among the targets does not
// change the line.
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "engine/nn/network_oracle.h"
#include "engine/tape/tape.h"

template <class V>
V huber(V error) {
  const V size = abs(error);
  return size.value() < 1 ? sqr(error) / 2 : size - 0.5;
}

gradwire::Network robust_line() {
  gradwire::Network net;
  const auto tape = std::make_shared<gradwire::Tape<double>>();
  custom_loss(affine(net.linear(1, 1), net.features(1)),
              [tape](std::span<const double> output, std::size_t, std::span<const double> target,
                     std::span<double> derivative) {
                const auto start = tape->checkpoint();
                const auto y = tape->variable(output[0]);
                const auto loss = huber(y - target[0]);
                backward(loss);
                derivative[0] = y.grad();
                tape->rewind(start);
                return loss.value();
              });
  return net;
}

class Line final : public gradwire::Examples<double> {
 public:
  std::size_t size() const override { return x_.size(); }
  gradwire::Example<double> operator[](std::size_t i) const override {
    gradwire::Example<double> example;
    example.features = {&x_[i], 1};
    example.targets = {&y_[i], 1};
    return example;
  }

 private:
  std::vector<double> x_ = {0, 1, 2, 3, 4, 5, 6}, y_ = {1, 3, 5, 700, 9, 11, 13};  // 2 x + 1
};

int main() {
  gradwire::NetworkOracle<double> oracle(robust_line(), std::make_unique<Line>());
  std::vector<double> x(2), gradient(2);
  for (int step = 0; step < 20000; ++step) {
    oracle.loss_and_gradient(x, {}, gradient);
    for (std::size_t j = 0; j < 2; ++j) x[j] -= 0.05 * gradient[j];
  }
  std::printf("y = %.3f x + %.3f\n", x[0], x[1]);
  return std::abs(x[0] - 2) < 0.1 && std::abs(x[1] - 1) < 0.5 ? 0 : 1;
}
