#include "rounds/round_loop.h"

#include "rounds/driver.h"

namespace gradwire {

template <class Real>
Outcome run_rounds(ServerAlgorithm<Real>& server, const Facts& facts, const Setup<Real>& setup,
                   Transport<Real>& transport, Ledger& ledger, const RoundLimits& limits,
                   const LoopHooks<Real>& hooks) {
  const RunOf<Real> run{server, facts, setup, transport, ledger, limits, hooks};
  return facts.asynchronous ? run_asynchronous(run) : run_synchronous(run);
}

template Outcome run_rounds(ServerAlgorithm<float>&, const Facts&, const Setup<float>&, Transport<float>&,
                            Ledger&, const RoundLimits&, const LoopHooks<float>&);
template Outcome run_rounds(ServerAlgorithm<double>&, const Facts&, const Setup<double>&, Transport<double>&,
                            Ledger&, const RoundLimits&, const LoopHooks<double>&);

}  // namespace gradwire
