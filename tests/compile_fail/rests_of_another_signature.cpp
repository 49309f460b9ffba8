// error: Server::rests() must be `bool rests(ClientId client) const`
#include "tests/compile_fail/algorithm.h"

namespace gradwire {
struct AsynchronousParams {
  static constexpr AlgorithmTraits traits{.name = "asynchronous",
                                          .summary = "gradients",
                                          .reference = "this file",
                                          .partial = false,
                                          .asynchronous = true};
  static void fields(auto&, auto&&) {}
  void resolve(const Theory&, Warnings&) {}
};
template <class Real>
struct Client {
  const RunContext<Real>& run_context;
  PayloadBuffer<Real> g;
  Client(const RunContext<Real>& s, const AsynchronousParams&) : run_context(s) {}
  static void fields(auto&, auto&&) {}
  Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
    Vec<Real>& v = ctx.scratch.vec(0, run_context.d);
    const double loss = ctx.oracle.loss_and_gradient(down.parts[0].values, {}, v);
    return reply_of(down, loss, g.whole(v));
  }
  void commit() {}
};
template <class Real>
struct Server : ModelServer<Real> {
  Server(const RunContext<Real>& s, const AsynchronousParams&) : ModelServer<Real>(s) {}
  void apply(Replies<Real>) { ++this->t; }
  bool rests() const { return false; }
};
struct Rests {
  using Params = AsynchronousParams;
  using Client = gradwire::Client<double>;
  using Server = gradwire::Server<double>;
};
void all() { check<Rests>(nullptr); }
}  // namespace gradwire
