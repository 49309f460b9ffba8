// An algorithm with every hook. Most other files of this folder break one hook and must not compile.
#pragma once

#include "algorithms/core/algorithm_adapter.h"
#include "algorithms/support/gradients.h"
#include "algorithms/support/mirror.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

struct WholeParams {
  static constexpr AlgorithmTraits traits{.name = "whole",
                                          .summary = "differences to shifts",
                                          .reference = "this file",
                                          .client_state = ClientState::kMirrored};
  static void fields(auto&, auto&&) {}
  void resolve(const Theory&, Warnings&) {}
};

template <class Real>
struct WholeClient {
  const RunContext<Real>& run_context;
  Vec<Real> h_i;
  PayloadBuffer<Real> m_i;

  WholeClient(const RunContext<Real>& s, const WholeParams&) : run_context(s), h_i(s.d) {}
  static void fields(auto& self, auto&& visit) { visit(self.h_i); }
  Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
    Vec<Real>& v = ctx.scratch.vec(0, run_context.d);
    const double loss = ctx.oracle.loss_and_gradient(down.parts[0].values, {}, v);
    axpy<Real>(Real(-1), h_i, v);
    return reply_of(down, loss, m_i.whole(v));
  }
  void commit(const Uplink<Real>& used) { add_decoded<Real>(used.parts[0], Real(1), h_i); }
  void adopt(const Downlink<Real>& resync, const ClientContext<Real>&) {
    adopt_vector(resync, run_context.d, h_i);
  }
};

template <class Real>
struct WholeServer : ModelServer<Real> {
  Mirror<Real> h_of;

  WholeServer(const RunContext<Real>& s, const WholeParams&) : ModelServer<Real>(s), h_of(s) {}
  void apply(Replies<Real> uplinks) {
    for (const auto& up : uplinks) h_of.add(up, 0, Real(1));
    ++this->t;
  }
  std::optional<Downlink<Real>> resync(ClientId i, ReplyStatus) const { return h_of.restore(i, this->t); }
};

// Makes both parts of an algorithm, which checks it.
template <class Algorithm>
void check(std::shared_ptr<const RunContext<double>> run_context) {
  (void)std::make_unique<ClientAdapter<Algorithm, double>>(run_context);
  (void)std::make_unique<ServerAdapter<Algorithm, double>>(run_context);
}

template <class Real, template <class> class ClientOf, template <class> class ServerOf>
struct Made {
  using Params = WholeParams;
  using Client = ClientOf<Real>;
  using Server = ServerOf<Real>;
};
template <template <class> class ClientOf, template <class> class ServerOf>
void list() {
  check<Made<double, ClientOf, ServerOf>>(nullptr);
}

}  // namespace gradwire
