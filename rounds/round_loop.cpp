#include "rounds/round_loop.h"

#include "rounds/driver.h"

namespace gradwire {

template <class Real>
Outcome run_rounds(ServerAlgorithm<Real>& server, const AlgorithmTraits& traits,
                   const RunContext<Real>& run_context, Transport<Real>& transport, RunProgress& progress,
                   const RoundLimits& limits, const LoopHooks<Real>& hooks) {
  const RunOf<Real> run{server, traits, run_context, transport, progress, limits, hooks};
  return traits.asynchronous ? run_asynchronous(run) : run_synchronous(run);
}

template Outcome run_rounds(ServerAlgorithm<float>&, const AlgorithmTraits&, const RunContext<float>&,
                            Transport<float>&, RunProgress&, const RoundLimits&, const LoopHooks<float>&);
template Outcome run_rounds(ServerAlgorithm<double>&, const AlgorithmTraits&, const RunContext<double>&,
                            Transport<double>&, RunProgress&, const RoundLimits&, const LoopHooks<double>&);

}  // namespace gradwire
