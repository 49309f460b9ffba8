#include "rounds/round_loop.h"

#include "rounds/driver.h"

namespace gradwire {

template <class Real>
Outcome run_rounds(ServerHalf<Real>& server, const Facts& facts, const Setup<Real>& setup,
                   Transport<Real>& transport, Ledger& ledger, const RoundLimits& limits,
                   const LoopHooks<Real>& hooks) {
  return run_synchronous<Real>({server, facts, setup, transport, ledger, limits, hooks});
}

template Outcome run_rounds(ServerHalf<float>&, const Facts&, const Setup<float>&, Transport<float>&, Ledger&,
                            const RoundLimits&, const LoopHooks<float>&);
template Outcome run_rounds(ServerHalf<double>&, const Facts&, const Setup<double>&, Transport<double>&,
                            Ledger&, const RoundLimits&, const LoopHooks<double>&);

}  // namespace gradwire
