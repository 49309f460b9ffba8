// error: Server has allotted_seconds(), rests() or work(), but traits.asynchronous is false
#include "tests/compile_fail/algorithm.h"

namespace gradwire {
template <class Real>
struct Server : WholeServer<Real> {
  using WholeServer<Real>::WholeServer;
  Downlink<Real> work(ClientId) const { return this->broadcast(); }
};
void all() { list<WholeClient, Server>(); }
}  // namespace gradwire
