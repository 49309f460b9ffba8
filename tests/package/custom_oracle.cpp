// A custom oracle with a gradient from the tape: Poisson regression,
//   f(x) = mean_j exp(a_j^T x) - y_j a_j^T x.
#include <cmath>
#include <cstdio>
#include <gradwire/oracle.h>
#include <vector>

#include "engine/tape/tape.h"

class Poisson final : public gradwire::Oracle<double> {
 public:
  std::size_t dim() const override { return 2; }
  std::size_t sample_count() const override { return y_.size(); }
  double loss_and_gradient(std::span<const double> x, gradwire::Batch batch,
                           std::span<double> gradient) override {
    std::copy(x.begin(), x.end(), tape_.parameter_values().begin());
    tape_.zero_parameter_gradients();
    const std::size_t count = batch.empty() ? y_.size() : batch.size();
    const auto start = tape_.checkpoint();
    double loss = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t j = batch.empty() ? k : batch[k];
      const auto p = tape_.parameters();
      const auto rate = p[0] + p[1] * a_[j];
      const auto sample_loss = exp(rate) - rate * y_[j];
      loss += sample_loss.value();
      backward(sample_loss, 1.0 / static_cast<double>(count));
      tape_.rewind(start);
    }
    const auto sum = tape_.parameter_gradients();
    std::copy(sum.begin(), sum.end(), gradient.begin());
    return loss / static_cast<double>(count);
  }

 private:
  gradwire::Tape<double> tape_{2};
  std::vector<double> a_ = {0, 0.5, 1, 1.5, 2}, y_ = {1, 2, 3, 4, 7};
};

int main() {
  Poisson oracle;
  std::vector<double> x(2), gradient(2), unused(2);
  for (int step = 0; step < 3000; ++step) {
    oracle.loss_and_gradient(x, {}, gradient);
    for (std::size_t j = 0; j < 2; ++j) x[j] -= 0.05 * gradient[j];
  }
  std::printf("x = (%.4f, %.4f), gradient norm %.1e\n", x[0], x[1], std::hypot(gradient[0], gradient[1]));
  const std::vector<double> right = {x[0] + 1e-6, x[1]}, left = {x[0] - 1e-6, x[1]};
  const double slope =
      (oracle.loss_and_gradient(right, {}, unused) - oracle.loss_and_gradient(left, {}, unused)) / 2e-6;
  return std::abs(slope - gradient[0]) < 1e-6 && std::hypot(gradient[0], gradient[1]) < 1e-3 ? 0 : 1;
}
