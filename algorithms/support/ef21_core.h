// The common parts of the EF21 family: clients send c_i = C(v − g_i) for the algorithm's gradient estimate v
// and set g_i ← g_i + c_i. The server keeps g = mean g_i.
//
// The option `init` sets g_i^0. Its bits count in round 0:
//   gradient    g_i^0 = v^0: a client's first message is sent whole (the authors' code)
//   compressed  g_i^0 = C(v^0): the first message is compressed like the others (the paper's listing)
//   zero        g_i^0 = 0: clients send nothing in round 0, and x^1 = x^0
#pragma once

#include <array>
#include <cmath>
#include <string_view>

#include "algorithms/core/params.h"
#include "algorithms/core/vector_ops.h"
#include "algorithms/support/gradients.h"
#include "algorithms/support/mirror.h"
#include "algorithms/support/schedule.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

struct Ef21Init {
  static constexpr std::array<std::string_view, 3> words = {"gradient", "compressed", "zero"};
};

// The constants θ and β of a contractive compressor (arXiv:2106.05203, Lemma 3 with its best s):
//   E‖g_i^{t+1} − ∇f_i(x^{t+1})‖² ≤ (1−θ) ‖g_i^t − ∇f_i(x^t)‖² + β ‖∇f_i(x^{t+1}) − ∇f_i(x^t)‖².
struct ErrorFeedback {
  double theta, beta;
  explicit ErrorFeedback(double alpha) : theta(1 - std::sqrt(1 - alpha)), beta((1 - alpha) / theta) {}
  double xi() const { return std::sqrt(beta / theta); }
};

// Returns γ of arXiv:2106.05203: 1/(L + L~ ξ(α)) of Theorem 1, or under the PL condition
// min(1/(L + L~ √2 ξ(α)), θ/(2μ)) of Theorem 2. `spread` takes the place of L~.
inline double ef21_step(const Theory& theory, double spread, double mu) {
  const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
  const ErrorFeedback c(theory.compressor.alpha);
  return pl_step(1 / (s.L + spread * std::sqrt(error_weight(mu)) * c.xi()), c.theta, mu);
}
inline double ef21_step(const Theory& theory) {
  return ef21_step(theory, need_smoothness(theory, "algorithm.step_size").L_tilde(), 0);
}

// Parameters of every algorithm of the family.
struct Ef21CoreParams {
  StepSize step_size;
  Choice<Ef21Init> init;
  Schedule schedule;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("init", self.init, "how g_i starts: gradient | compressed | zero");
    Schedule::fields(self.schedule, visit);
  }
  void resolve_step(const Theory& theory, Warnings& warnings, auto&& step) {
    schedule.resolve(theory, warnings, !step_size.value);
    if (!step_size.value) step_size.resolve(step());
  }
};

// Parameters of the algorithms whose theorem has a linear rate under the PL condition.
struct Ef21PlParams : Ef21CoreParams {
  PlConstant mu;

  static void fields(auto& self, auto&& visit) {
    Ef21CoreParams::fields(self, visit);
    visit("mu", self.mu, kPlMeaning, pl_rules(self.step_size));
  }
};

template <class Real>
struct Ef21CoreClient {
  const RunContext<Real>& run_context;
  bool first_whole;
  Vec<Real> g_i;
  PayloadBuffer<Real> c_i;

  Ef21CoreClient(const RunContext<Real>& s, const Ef21CoreParams& p)
      : run_context(s), first_whole(p.init.is("gradient")), g_i(s.d) {}
  static void fields(auto& self, auto&& visit) { visit(self.g_i); }

  // Proposes c_i for the estimate v; overwrites v.
  Uplink<Real> propose(Vec<Real>& v, double loss, const Downlink<Real>& down,
                       const ClientContext<Real>& ctx) {
    if (ctx.first && first_whole) {
      axpy<Real>(Real(-1), g_i, v);
      return reply_of(down, loss, c_i.whole(v));
    }
    return reply_of(
        down, loss,
        compress_shifted<Real>(ctx.compressor, v, g_i, ctx.draw_key(down.round), ctx.scratch, c_i));
  }
  // Proposes c_i for v = ∇f_i(x^t; ξ), on all samples or on the experiment's batch.
  Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
    const View<Real> x = down.parts[0].values;
    Vec<Real>& r = ctx.scratch.vec(0, x.size());
    const double loss = gradient_at(run_context, ctx, down.round, x, r);
    return propose(r, loss, down, ctx);
  }
  void commit(const Uplink<Real>& used) { add_decoded<Real>(used.parts[0], Real(1), g_i); }
  void adopt(const Downlink<Real>& resync, const ClientContext<Real>&) {
    adopt_vector(resync, run_context.d, g_i);
  }
};

template <class Real>
struct Ef21CoreServer : ModelServer<Real> {
  using Base = ModelServer<Real>;
  using Base::run_context, Base::t, Base::x;
  bool starts_at_zero;
  double gamma;
  Schedule schedule;
  Vec<Real> g;
  Mirror<Real> g_of;

  Ef21CoreServer(const RunContext<Real>& s, const Ef21CoreParams& p)
      : Base(s),
        starts_at_zero(p.init.is("zero")),
        gamma(*p.step_size.value),
        schedule(p.schedule),
        g(s.d),
        g_of(s) {}
  static void fields(auto& self, auto&& visit) {
    Base::fields(self, visit);
    visit(self.g);
    visit(self.g_of.rows());
  }

  // Sets `out` to the cohort of round 0 and returns true. The cohort has all clients, because g^0 needs every
  // g_i^0, or no clients if all g_i^0 are 0. In later rounds returns false.
  bool first_cohort(std::vector<ClientId>& out) const {
    if (t > 0) return false;
    out.clear();
    if (!starts_at_zero) all_clients(run_context.n, out);
    return true;
  }
  void cohort(std::vector<ClientId>& out) const {
    if (!first_cohort(out)) Base::cohort(out);
  }
  std::optional<Downlink<Real>> resync(ClientId i, ReplyStatus) const { return g_of.restore(i, t); }
  LyapunovState<Real> lyapunov_state() const { return {.shifts = g_of.rows()}; }

  Real gamma_now() const { return Real(gamma * schedule.factor(t)); }
  // Computes g ← g + Σ_{i∈S} w_i c_i.
  void average(Replies<Real> uplinks) {
    add_weighted<Real>(run_context, uplinks, 0, Real(1), g);
    for (const auto& up : uplinks) g_of.add(up, 0, Real(1));
  }
  void apply(Replies<Real> uplinks) {
    average(uplinks);
    axpy<Real>(-gamma_now(), g, x);
    ++t;
  }
};

}  // namespace gradwire
