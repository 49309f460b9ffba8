// error: traits.asynchronous is for algorithms whose clients keep no state
#include "tests/compile_fail/algorithm.h"

namespace gradwire {
struct AsynchronousParams : WholeParams {
  static constexpr AlgorithmTraits traits{.name = "asynchronous",
                                          .summary = "differences to shifts",
                                          .reference = "this file",
                                          .asynchronous = true,
                                          .client_state = ClientState::kMirrored};
};
template <class Real>
struct Asynchronous {
  using Params = AsynchronousParams;
  using Client = WholeClient<Real>;
  using Server = WholeServer<Real>;
};
void all() { check<Asynchronous<double>>(nullptr); }
}  // namespace gradwire
