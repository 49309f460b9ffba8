// error: Server has superseded(), but traits.asynchronous is false
#include "tests/compile_fail/algorithm.h"

namespace gradwire {
template <class Real>
struct Server : WholeServer<Real> {
  using WholeServer<Real>::WholeServer;
  bool superseded(std::uint32_t round) const { return round + 3 < this->t; }
};
void all() { list<WholeClient, Server>(); }
}  // namespace gradwire
