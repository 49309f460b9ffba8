// SCAFFOLD — Karimireddy, Kale, Mohri, Reddi, Stich, Suresh, arXiv:1910.06378, Algorithm 1.
//
//   y = x^t;  K times:  y ← y − γ_l (∇f_i(y) − c_i + c)      client i; c_i starts at 0
//   c_i⁺ = ∇f_i(x^t) (option 1)  or  c_i − c + (x^t − y)/(K γ_l) (option 2)
//   sends y − x^t and c_i⁺ − c_i;  c_i ← c_i⁺
//   x^{t+1} = x^t + γ mean_{i∈S} (y_i − x^t)                 server, sends x^{t+1} and c
//   c ← c + (1/n) Σ_{i∈S} (c_i⁺ − c_i), so that c = mean c_i always
//
// With clients.weights c = Σ w_i c_i. The mean of the changes is FedAvg's ratio (vector_ops.h). Near x* all
// y_i − x^t are nearly equal, so every average of them is close to the true one, and FedAvg's ratio has the
// least variance.
//
// Theory: γ_l = 1/(81 K γ L_max), but at most
//   |S|/(15 μ n K γ)              for convex f_i and μ > 0,
//   (|S|/n)^{2/3}/(24 K γ L_max)  for nonconvex f_i.
// In practice 1/(K L_max) works. local_optimizer steps along ∇f_i(y) − c_i + c.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/support/gradients.h"
#include "algorithms/support/local_steps.h"
#include "algorithms/support/mirror.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

struct ScaffoldOption {
  static constexpr std::array<std::string_view, 2> words = {"2", "1"};
};

struct ScaffoldParams {
  static constexpr AlgorithmTraits traits{
      .name = "scaffold",
      .summary = "local steps corrected by control variates c_i: no client drift",
      .reference = "Karimireddy et al., arXiv:1910.06378",
      .compressor_class = CompressorClass::kIdentity,
      .stochastic = true,
      .client_state = ClientState::kMirrored,
      .theory_knows_sampling = true,
      .theory_knows_batches = true,
      .adds_replies = true,
  };
  StepSize step_size{.value = 1.0};
  Choice<ScaffoldOption> option;
  LocalSteps local;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step along the mean of the changes");
    visit("option", self.option, "update of c_i: 2 from the local steps | 1 by a gradient at x");
    LocalSteps::fields(self.local, visit);
  }
  void needs(NeededConstants& constants) const { local.needs(constants); }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (option.is("2") && !local.optimizer.is_plain())
      throw ConfigError(
          "algorithm.option",
          "option 2 computes c_i from the local steps, which must be plain gradient steps; with "
          "local_optimizer, local_weight_decay or local_clip_norm write option = \"1\"");
    step_size.resolve(1);
    local.resolve(theory, warnings, [&](double K) {
      const Smoothness& s = need_smoothness(theory, "algorithm.local_step_size");
      const double scale = K * *step_size.value, share = theory.participation * theory.quorum;
      const double by_L = 1 / (81 * K * *step_size.value * s.L_max());
      if (!s.convex) return std::min(by_L, std::pow(share, 2.0 / 3) / (24 * scale * s.L_max()));
      if (!(s.mu > 0)) return by_L;
      return std::min(by_L, share / (15 * s.mu * K * *step_size.value));
    });
  }
};

template <class Real>
struct Scaffold {
  using Params = ScaffoldParams;
  static constexpr std::size_t kPartsUp = 2, kPartsDown = 2;

  struct Client {
    const RunContext<Real>& run_context;
    LocalSteps local;
    LocalOptimizer optimizer;
    bool gradient_at_x;
    Vec<Real> c_i;
    PayloadBuffer<Real> dy, dc;

    Client(const RunContext<Real>& s, const Params& p)
        : run_context(s),
          local(p.local),
          optimizer(p.local.optimizer, s.d),
          gradient_at_x(p.option.is("1")),
          c_i(s.d) {}
    static void fields(auto& self, auto&& visit) { visit(self.c_i); }

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values, c = down.parts[1].values;
      const Real gamma_l = Real(*local.step_size.value * local.schedule.factor(down.round));
      Vec<Real>& y = ctx.scratch.vec(0, x.size());
      Vec<Real>& grad = ctx.scratch.vec(1, x.size());
      Vec<Real>& change = ctx.scratch.vec(2, x.size());
      std::copy(x.begin(), x.end(), y.begin());
      // (x − y)/(K γ_l) is the mean of the local steps' directions. If γ_l is too small to divide by, the
      // directions are summed instead.
      const bool sums = !gradient_at_x && !(gamma_l >= std::numeric_limits<Real>::min());
      if (sums) std::fill(change.begin(), change.end(), Real(0));
      double loss_at_x = 0;
      std::uint32_t K = 0;
      each_local_step(local, run_context.algorithm.batch, down.round, ctx, [&](std::uint32_t k, Batch batch) {
        const double loss = ctx.oracle.loss_and_gradient(y, batch, grad);
        if (k == 0) loss_at_x = loss;
        for (std::size_t j = 0; j < x.size(); ++j) grad[j] = grad[j] - c_i[j] + c[j];
        if (sums) axpy<Real>(Real(1), grad, change);
        optimizer.step(k, gamma_l, grad, y, ctx.scratch);
        ++K;
      });
      if (gradient_at_x) {
        ctx.oracle.loss_and_gradient(x, {}, change);
        axpy<Real>(Real(-1), c_i, change);
      } else if (sums) {
        for (std::size_t j = 0; j < x.size(); ++j) change[j] = change[j] / Real(K) - c[j];
      } else {
        const Real scale = Real(1) / (Real(K) * gamma_l);
        for (std::size_t j = 0; j < x.size(); ++j) change[j] = scale * (x[j] - y[j]) - c[j];
      }
      axpy<Real>(Real(-1), x, y);
      return reply_of(down, loss_at_x, Parts<Real>{dy.whole(y), dc.whole(change)});
    }
    void commit(const Uplink<Real>& used) { add_decoded<Real>(used.parts[1], Real(1), c_i); }
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>&) {
      adopt_vector(resync, run_context.d, c_i);
    }
  };

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::run_context, Base::t, Base::x;
    Real gamma;
    Vec<Real> c;
    Mirror<Real> c_of;

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s), gamma(Real(*p.step_size.value)), c(s.d), c_of(s) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.c);
      visit(self.c_of.rows());
    }

    Downlink<Real> broadcast() const { return {t, 0, {Payload<Real>::dense(x), Payload<Real>::dense(c)}}; }
    std::optional<Downlink<Real>> resync(ClientId i, ReplyStatus) const { return c_of.restore(i, t); }
    void apply(Replies<Real> uplinks) {
      add_average_of_replies<Real>(run_context, uplinks, 0, gamma, x);
      add_weighted<Real>(run_context, uplinks, 1, Real(1), c);
      for (const auto& up : uplinks) c_of.add(up, 1, Real(1));
      ++t;
    }
  };
};

}  // namespace gradwire
