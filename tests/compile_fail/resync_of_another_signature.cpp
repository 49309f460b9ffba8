// error: a client's lost state can be restored: Server needs `std::optional<Downlink<Real>> resync(
#include "tests/compile_fail/algorithm.h"

namespace gradwire {
template <class Real>
struct Server : WholeServer<Real> {
  using WholeServer<Real>::WholeServer;
  std::optional<Downlink<Real>> resync(ClientId i) const { return this->h_of.restore(i, this->t); }
};
void all() { list<WholeClient, Server>(); }
}  // namespace gradwire
