// error: commit(used) is for a client whose whole state follows from its used replies
#include "tests/compile_fail/algorithm.h"

namespace gradwire {
struct ReplicaParams : WholeParams {
  static constexpr AlgorithmTraits traits{.name = "replica",
                                          .summary = "shifts and a replica",
                                          .reference = "this file",
                                          .client_state = ClientState::kMirrored | ClientState::kReplica};
};
template <class Real>
struct Replica {
  using Params = ReplicaParams;
  using Client = WholeClient<Real>;
  using Server = WholeServer<Real>;
};
void all() { check<Replica<double>>(nullptr); }
}  // namespace gradwire
