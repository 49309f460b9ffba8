// Poisson regression with gradients from a tape: f_i(x) = mean_j exp(r_j) - y_j r_j, r_j = x_0 + x_1 a_j.
#include <algorithm>
#include <cstdio>
#include <gradwire/tape.h>
#include <gradwire/train.h>
#include <vector>

class Poisson final : public gradwire::Oracle<double> {
 public:
  Poisson(std::vector<double> a, std::vector<double> y) : a_(std::move(a)), y_(std::move(y)) {}
  std::size_t dim() const override { return 2; }
  std::size_t sample_count() const override { return y_.size(); }
  double loss_and_gradient(Reals x, gradwire::Batch batch, RealsOut gradient) override {
    std::ranges::copy(x, tape_.parameter_values().begin());
    tape_.zero_parameter_gradients();
    const auto start = tape_.checkpoint();
    const std::size_t count = batch.empty() ? y_.size() : batch.size();
    auto loss = tape_.constant(0);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t j = batch.empty() ? k : batch[k];
      const auto rate = tape_.parameter(0) + tape_.parameter(1) * a_[j];
      loss += exp(rate) - y_[j] * rate;
    }
    backward(loss, 1.0 / static_cast<double>(count));
    tape_.rewind(start);  // forgets the records; the next call uses their memory again
    std::ranges::copy(tape_.parameter_gradients(), gradient.begin());
    return loss.value() / static_cast<double>(count);
  }

 private:
  gradwire::Tape tape_{2};
  std::vector<double> a_, y_;
};

int main() {
  Poisson clients[] = {{{0, 0.5, 1}, {1, 2, 3}}, {{1.5, 2}, {4, 7}}};
  const auto result = gradwire::train(clients, {.algorithm = "gd", .step_size = 0.1, .rounds = 2000});
  std::printf("x = (%.4f, %.4f)\n", result.model()[0], result.model()[1]);
  return *result.rows().back().grad_norm_sq < 1e-12 ? 0 : 1;
}
