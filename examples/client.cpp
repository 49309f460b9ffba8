// A client with training code of its own: client NUMBER, 0 to 2, of examples/server.cpp.
//   client 127.0.0.1:7000 0
#include "gradwire/client.h"

#include <cstdio>
#include <cstdlib>

// f_i(x) = ||A x - b||^2 / (2 m), over m points of a line with noise; x = (slope, offset).
class Line final : public gradwire::Oracle<double> {
 public:
  explicit Line(std::uint32_t client) : client_(client) {}
  std::size_t dim() const override { return 2; }
  std::size_t sample_count() const override { return 10; }
  double loss_and_gradient(Reals x, gradwire::Batch batch, RealsOut gradient) override {
    const std::size_t count = batch.empty() ? sample_count() : batch.size();  // all if it is empty
    double loss = gradient[0] = gradient[1] = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t j = batch.empty() ? k : batch[k];
      const double a = client_ + 0.1 * static_cast<double>(j), b = 2 * a - 1 + (j % 2 == 0 ? 0.1 : -0.1);
      const double residual = x[0] * a + x[1] - b, share = 1 / static_cast<double>(count);
      loss += share * residual * residual / 2;
      gradient[0] += share * residual * a;
      gradient[1] += share * residual;
    }
    return loss;
  }

 private:
  const std::uint32_t client_;
};

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto number = static_cast<std::uint32_t>(std::atoi(argv[2]));
  Line line(number);
  gradwire::run_client(line, {.server = argv[1], .part = number, .parts = 3});
  std::printf("client %u: the run is over\n", number);
}
