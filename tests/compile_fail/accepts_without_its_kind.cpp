// error: Client::accepts() must be `bool accepts(const Downlink<Real>&, bool is_resync) const`
#include "tests/compile_fail/algorithm.h"

namespace gradwire {
template <class Real>
struct Client : WholeClient<Real> {
  using WholeClient<Real>::WholeClient;
  bool accepts(const Downlink<Real>& down) const { return down.parts.size() == 1; }
};
void all() { list<Client, WholeServer>(); }
}  // namespace gradwire
