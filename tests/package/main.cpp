// A program that knows only the installed library: two clients find the mean of their points.
#include <cmath>
#include <cstdio>
#include <gradwire/train.h>

struct Distance final : gradwire::Oracle<double> {
  explicit Distance(double a) : a(a) {}
  std::size_t dim() const override { return 1; }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(std::span<const double> x, gradwire::Batch, std::span<double> gradient) override {
    gradient[0] = x[0] - a;
    return gradient[0] * gradient[0] / 2;
  }
  double a;
};

int main() {
  std::vector<Distance> clients = {Distance(1), Distance(3)};
  const auto result = gradwire::train(clients, {.algorithm = "gd", .step_size = 0.5, .rounds = 60});
  std::printf("x = %.6f with gradwire %s\n", result.model()[0], std::string(gradwire::version()).c_str());
  return std::fabs(result.model()[0] - 2) < 1e-6 ? 0 : 1;
}
