// error: Server::cohort() must be `void cohort(std::vector<ClientId>& out) const`
#include "tests/compile_fail/algorithm.h"

namespace gradwire {
template <class Real>
struct Server : WholeServer<Real> {
  using WholeServer<Real>::WholeServer;
  std::vector<ClientId> cohort() const { return {0}; }
};
void all() { list<WholeClient, Server>(); }
}  // namespace gradwire
