// ProxSkip / Scaffnew — Mishchenko, Malinovsky, Stich, Richtárik, arXiv:2202.09357, Algorithm 2.
//
//   x̂_i = x_i − γ (∇f_i(x_i) − h_i)                        client i; Σ h_i = 0, h_i starts at 0
//   one coin for all clients, heads with probability p:
//     heads: sends x̂_i; x_i = (1/n) Σ x̂_j, h_i ← h_i + (p/γ) (x_i − x̂_i)
//     tails: x_i = x̂_i
//
// A round is one communication. All clients start it at the mean x^t, and the coins of round t give the
// number of local steps until heads. Theory: for γ = 1/L_max and p = √(γμ) (= 1/√κ),
//   Ψ = Σ ‖x_i − x*‖² + (γ/p)² Σ ‖h_i − ∇f_i(x*)‖²
// shrinks by the factor 1 − min(γμ, p²) in each step. The update of h_i assumes plain gradient steps, so
// local_optimizer is not supported.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/core/params.h"
#include "algorithms/support/gradients.h"
#include "algorithms/support/mirror.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

struct ProxSkipParams {
  static constexpr AlgorithmTraits traits{
      .name = "proxskip",
      .summary = "local steps with control variates and accelerated communication",
      .reference = "Mishchenko et al., arXiv:2202.09357",
      .compressor_class = CompressorClass::kIdentity,
      .needs_all_replies = true,
      .partial = false,
      .stochastic = true,
      .client_state = ClientState::kMirrored,
      .adds_replies = true,
  };
  StepSize step_size;
  std::optional<double> p;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the clients' steps");
    visit("p", self.p, "probability that a step communicates; theory: sqrt(gamma mu)");
  }
  void needs(NeededConstants& constants) const {
    if (!step_size.value) constants.smoothness = "algorithm.step_size";
    if (!p) constants.convexity = "algorithm.p";
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (p) check_probability(*p, "p");
    if (!step_size.value) {
      const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
      if (!s.convex)
        warnings.push_back(
            "proxskip: the theorem of the step size assumes convex f_i, but these are not convex");
      step_size.resolve(1 / s.L_max());
    }
    if (!p) p = std::min(1.0, std::sqrt(*step_size.value * need_convexity(std::nullopt, theory, "p")));
  }
};

template <class Real>
struct ProxSkip {
  using Params = ProxSkipParams;

  struct Client {
    const RunContext<Real>& run_context;
    Real gamma, p_by_gamma;
    double p;
    Vec<Real> h_i;
    Vec<Real> sent;      // x̂_i of the last used reply, until the mean arrives
    Vec<Real> proposed;  // x̂_i
    PayloadBuffer<Real> message;

    Client(const RunContext<Real>& s, const Params& params)
        : run_context(s),
          gamma(Real(*params.step_size.value)),
          p_by_gamma(Real(*params.p / *params.step_size.value)),
          p(*params.p),
          h_i(s.d) {}
    static void fields(auto& self, auto&& visit) {
      visit(self.h_i);
      visit(self.sent);
    }

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      for (std::size_t j = 0; j < sent.size(); ++j) h_i[j] += p_by_gamma * (x[j] - sent[j]);
      sent.clear();
      Vec<Real>& grad = ctx.scratch.vec(0, x.size());
      proposed.assign(x.begin(), x.end());
      double loss_at_x = 0;
      const std::uint32_t steps = shared_geometric(ctx.seed, down.round, p);
      for (std::uint32_t k = 0; k < steps; ++k) {
        const double loss =
            ctx.oracle.loss_and_gradient(proposed, batch_of(run_context, ctx, down.round, k), grad);
        if (k == 0) loss_at_x = loss;
        for (std::size_t j = 0; j < x.size(); ++j) proposed[j] -= gamma * (grad[j] - h_i[j]);
      }
      grad = proposed;
      return reply_of(down, loss_at_x, message.whole(grad));
    }
    void commit() { sent.swap(proposed); }
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>&) {
      adopt_vector(resync, run_context.d, h_i);
      sent.clear();
    }
  };

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::run_context, Base::t, Base::x;
    Real p_by_gamma;
    std::vector<Vec<Real>> h_of;  // h_i, if replicas are kept

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s),
          p_by_gamma(Real(*p.p / *p.step_size.value)),
          h_of(s.keep_client_state_replicas ? s.n : 0) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.h_of);
    }

    bool accepts(const UplinkView<Real>& up) const {
      if (up.parts.size() != 1 || up.parts[0].dim != run_context.d) return false;
      // Replicas need each vector. Without them, a reply may be empty because its vector arrived in a sum.
      return up.parts[0].shape == Shape::kDense || (h_of.empty() && up.parts[0].shape == Shape::kNothing);
    }
    std::optional<Downlink<Real>> resync(ClientId i, ReplyStatus) const {
      if (h_of.empty()) return std::nullopt;
      Downlink<Real> down;
      down.round = t;
      if (!h_of[i].empty()) down.parts = {Payload<Real>::dense(h_of[i])};
      return down;
    }
    void apply(Replies<Real> uplinks) {
      std::fill(x.begin(), x.end(), Real(0));
      add_weighted<Real>(run_context, uplinks, 0, Real(1), x);
      ++t;
      if (h_of.empty()) return;
      for (const auto& up : uplinks) {
        Vec<Real>& h_i = h_of[up.client];
        h_i.resize(run_context.d);
        const View<Real> sent = up.parts[0].values;
        for (std::size_t j = 0; j < h_i.size(); ++j) h_i[j] += p_by_gamma * (x[j] - sent[j]);
      }
    }
  };
};

}  // namespace gradwire
