// Trains on functions of this program: four clients find the mean of their points. With EF21 and Top-1, each
// client sends one number of three per round.
#include <cmath>
#include <cstdio>
#include <gradwire/train.h>
#include <utility>
#include <vector>

// f_i(x) = ||x - a||^2 / 2.
class Distance final : public gradwire::Oracle<double> {
 public:
  explicit Distance(std::vector<double> a) : a_(std::move(a)) {}
  std::size_t dim() const override { return a_.size(); }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(std::span<const double> x, gradwire::Batch, std::span<double> gradient) override {
    double loss = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      gradient[j] = x[j] - a_[j];
      loss += gradient[j] * gradient[j] / 2;
    }
    return loss;
  }

 private:
  std::vector<double> a_;  // shape (d)
};

int main() {
  std::vector<Distance> clients = {Distance({1, 0, 4}), Distance({3, 0, 0}), Distance({0, 8, 0}),
                                   Distance({0, 0, 0})};
  const auto result = gradwire::train(
      clients, {.algorithm = "ef21", .compressor = "topk:k=1", .step_size = 0.2, .rounds = 300});
  const auto x = result.model();
  std::printf("x = %.6f %.6f %.6f after %.0f bits a client\n", x[0], x[1], x[2],
              result.metrics("bits_up").back());
  result.save("results/mean", /*overwrite=*/true);
  return std::fabs(x[0] - 1) + std::fabs(x[1] - 2) + std::fabs(x[2] - 1) < 1e-6 ? 0 : 1;
}
