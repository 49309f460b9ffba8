// A custom compressor. It cuts the vector into blocks, and sends a random block, scaled so that the mean is
// the vector. Both ends draw the block from the key of the message, so its number is not sent. MARINA and
// DIANA use the compressor with the step sizes of their theorems, which depend only on its constants.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "rounds/round_loop.h"
#include "simulation/fault_simulation.h"

using namespace gradwire;

struct RandomBlock {
  static constexpr std::string_view name = "random_block";
  std::uint32_t blocks;

  CompressorConstants constants(std::size_t d) const {
    return CompressorConstants::of_unbiased(blocks - 1,
                                            static_cast<double>(d) / blocks);  // omega, values sent
  }
  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>&,
                                  PayloadBuffer<Real>& to) const {
    const auto d = static_cast<std::uint32_t>(v.size());
    const std::uint32_t first = draw_first(key, d), length = d / blocks;
    to.values().resize(length);
    for (std::uint32_t j = 0; j < length; ++j) to.values()[j] = Real(blocks) * v[first + j];
    to.range(d, first);
    to.set_seeded(key);
    return to.view();
  }
  // Draws the indices at the receiver, instead of reading `first`.
  bool redraw(Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
              std::vector<std::uint32_t>&, std::uint32_t& first) const {
    if (shape != Shape::kRange || count != dim / blocks) return false;
    first = draw_first(key, dim);
    return true;
  }

 private:
  std::uint32_t draw_first(const RngKey& key, std::uint32_t d) const {
    return RngStream(key).below(blocks) * (d / blocks);
  }
};

// f_i(x) = ||x - a||^2 / 2.
class Distance final : public Oracle<double> {
 public:
  explicit Distance(std::vector<double> a) : a_(std::move(a)) {}
  std::size_t dim() const override { return a_.size(); }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(std::span<const double> x, Batch, std::span<double> gradient) override {
    double loss = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      gradient[j] = x[j] - a_[j];
      loss += gradient[j] * gradient[j] / 2;
    }
    return loss;
  }

 private:
  std::vector<double> a_;
};

// Returns the distance to the mean (1, 2, 1, 0) after 600 rounds.
double distance_after(const char* algorithm) {
  std::vector<Distance> clients = {Distance({1, 0, 3, 1}), Distance({2, 0, 0, -1}), Distance({0, 6, 0, 0})};
  std::vector<Oracle<double>*> oracles;
  for (Distance& client : clients) oracles.push_back(&client);
  Smoothness smoothness;
  smoothness.L = smoothness.mu = 1;
  smoothness.L_i = {1, 1, 1};
  smoothness.convex = true;

  auto run_context = std::make_shared<RunContext<double>>();
  run_context->n = 3;
  run_context->d = 4;
  run_context->x0.assign(4, 0.0);
  run_context->compressor = custom_compressor(RandomBlock{2});
  std::vector<std::string> warnings;
  run_context->algorithm =
      resolve({.name = algorithm, .step_size = "theory"}, run_context->compressor,
              {.n = run_context->n, .d = run_context->d, .smoothness = &smoothness}, warnings);

  const auto server = make_server<double>(run_context);
  FaultSimulation<double> transport(run_context, oracles, {.encoded = true});
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 600;
  run_rounds<double>(*server, traits_of(*run_context), *run_context, transport, progress, limits, {});
  const auto x = server->model();
  const double distance = std::hypot(std::hypot(x[0] - 1, x[1] - 2), std::hypot(x[2] - 1, x[3]));
  std::printf("%s with %s and step %s: distance %g\n", algorithm, run_context->algorithm.compressor.c_str(),
              run_context->algorithm.step_size.c_str(), distance);
  return distance;
}

int main() { return distance_after("marina") < 1e-6 && distance_after("diana") < 1e-6 ? 0 : 1; }
