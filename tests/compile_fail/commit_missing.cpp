// error: Client lacks `void commit()`
#include "tests/compile_fail/algorithm.h"

namespace gradwire {
template <class Real>
struct Client : WholeClient<Real> {
  using WholeClient<Real>::WholeClient;

 private:
  using WholeClient<Real>::commit;
};
void all() { list<Client, WholeServer>(); }
}  // namespace gradwire
