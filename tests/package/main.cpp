// Federated optimisation of a user's own function. Four clients, each with a point a_i, find the mean of the
// points with EF21 and Top-1. So each client sends one number of three per round.
#include <cmath>
#include <cstdio>
#include <gradwire/oracle.h>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "rounds/round_loop.h"
#include "simulation/fault_simulation.h"

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
  std::vector<gradwire::Oracle<double>*> oracles;
  for (Distance& client : clients) oracles.push_back(&client);

  auto run_context = std::make_shared<gradwire::RunContext<double>>();
  run_context->n = static_cast<std::uint32_t>(clients.size());
  run_context->d = clients[0].dim();
  run_context->x0.assign(run_context->d, 0.0);
  gradwire::AlgorithmSpec spec;
  spec.name = "ef21";
  spec.compressor = "topk:k=1";
  spec.step_size = "0.2";
  run_context->compressor = gradwire::parse_compressor(spec.compressor, run_context->d);
  std::vector<std::string> warnings;
  const gradwire::Theory theory{.n = run_context->n,
                                .d = run_context->d,
                                .compressor = constants(run_context->compressor, run_context->d)};
  run_context->algorithm = gradwire::resolve(spec, theory, warnings);

  const auto server = gradwire::make_server<double>(run_context);
  gradwire::FaultSimulation<double> transport(run_context, oracles, {});
  gradwire::RunProgress progress{.committed = std::vector<std::uint64_t>(run_context->n)};
  gradwire::run_rounds<double>(*server, gradwire::find_algorithm("ef21").traits, *run_context, transport,
                               progress, {.rounds = 300}, {});

  const auto x = server->model();
  std::printf("x = %.6f %.6f %.6f (the mean is 1 2 1)\n", x[0], x[1], x[2]);
  return std::fabs(x[0] - 1) + std::fabs(x[1] - 2) + std::fabs(x[2] - 1) < 1e-6 ? 0 : 1;
}
