#include "experiments/simulate/prepare.h"

#include <algorithm>
#include <numeric>

#include "algorithms/methods.h"
#include "algorithms/support/params.h"
#include "engine/smoothness/estimate_smoothness.h"
#include "fl_client/local_problem.h"
#include "proto/config/experiment_file.h"
#include "proto/config/start_point.h"

namespace gradwire {
namespace {

// The constants are reported even when no step size needs them, unless computing them takes seconds.
bool is_cheap(const std::vector<Part>& parts) {
  constexpr std::size_t kCheapNonzeros = 5'000'000;
  std::size_t nonzeros = 0;
  for (const Part& part : parts) nonzeros += part.train.value.size();
  return nonzeros <= kCheapNonzeros;
}

Smoothness estimate(Prepared& p) {
  Smoothness s = estimate_smoothness(make_oracles<double>(p.problem, p.agreement, p.parts), p.weights, p.x0,
                                     p.experiment.seed);
  p.warnings.push_back(
      "kind " + std::string(p.problem.kind().name) +
      " has no closed-form constants: theory uses estimates, L = " + write_parameter(s.L) +
      " and L_max = " + write_parameter(s.L_max()) +
      ", the largest curvatures met near x0; if the run diverges, take a smaller multiple, as "
      "in \"theory*0.5\"");
  return s;
}

void resolve_algorithm(Prepared& p) {
  const AlgorithmSpec spec = algorithm_spec(p.experiment);
  const bool closed_form = p.problem.kind().has_smoothness;
  const NeededConstants needed = needed_constants(spec, p.problem.clients);
  if (closed_form && (needed.any() || is_cheap(p.parts)))
    p.smoothness = smoothness(p.problem, p.agreement, p.parts, p.weights);
  if (!closed_form && !needed.smoothness.empty()) p.smoothness = estimate(p);
  const AlgorithmSpec resolved = resolve(spec, p.theory(), p.warnings);
  set_algorithm(p.experiment, resolved);
  const std::uint32_t n = p.theory().n;
  p.quality = quality(uplink_compressor(resolved, p.d, n), compressed_dim(resolved.name, p.d), n);
}

}  // namespace

Prepared prepare(const LoadedExperiment& loaded) {
  Prepared p;
  p.experiment = loaded.experiment;
  try {
    p.problem = problem_spec(p.experiment);
    p.parts = load_parts(p.experiment, loaded.folder());
    p.agreement = agreement_of(p.parts, p.problem);
    check_agreement(p.problem, p.agreement);
    p.d = model_dim(p.problem, p.agreement);
    std::vector<std::uint64_t> samples;
    for (const Part& part : p.parts) samples.push_back(part.train_count());
    // A function without data counts as one sample.
    p.samples = std::max<std::uint64_t>(std::accumulate(samples.begin(), samples.end(), std::uint64_t{0}),
                                        p.problem.clients);
    p.weights = client_weights(p.experiment, samples);
    p.x0 = start_point(p.experiment, p.agreement, loaded.folder());
    resolve_algorithm(p);
  } catch (const ConfigError& error) {
    throw locate(loaded, error);
  }
  make_paths_absolute(p.experiment, loaded.folder());
  return p;
}

}  // namespace gradwire
