// error: a client's lost state can be restored: Client needs `void adopt(
#include "tests/compile_fail/algorithm.h"

namespace gradwire {
template <class Real>
struct Client {
  WholeClient<Real> whole;

  Client(const RunContext<Real>& s, const WholeParams& p) : whole(s, p) {}
  static void fields(auto& self, auto&& visit) { WholeClient<Real>::fields(self.whole, visit); }
  Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
    return whole.reply(down, ctx);
  }
  void commit(const Uplink<Real>& used) { whole.commit(used); }
  void adpot(const Downlink<Real>& resync, const ClientContext<Real>& ctx) { whole.adopt(resync, ctx); }
};
void all() { list<Client, WholeServer>(); }
}  // namespace gradwire
