// FedNL — Safaryan, Islamov, Qian, Richtárik, arXiv:2106.02969, Algorithm 1, and FedNL-LS, Algorithm 3.
//
//   S_i = C_i(∇²f_i(x^t) − H_i),  l_i = ‖H_i − ∇²f_i(x^t)‖_F              client i
//   H_i ← H_i + α S_i                                                     sends ∇f_i(x^t), S_i and l_i
//   g = mean ∇f_i(x^t),  H = mean H_i (before this round's S_i), l = mean l_i     server
//   option 1: v = [H]_μ^{−1} g,  option 2: v = (H + l I)^{−1} g
//   x^{t+1} = x^t − γ v,  H ← H + α mean S_i                              sends x^{t+1}
//
// [H]_μ is H with its eigenvalues raised to at least μ. If the compressors' error exceeds μ, option 1
// diverges even from x = 0. l is as large as that error, so option 2, the default, does not diverge. Matrices
// are compressed as their upper triangle, a vector of d(d+1)/2 entries; `k` of a compressor counts these. The
// paper's Rank-R compressor is `rankr`. `init` sets H_i^0: hessian (∇²f_i(x^0), sent whole) or zero. By
// default, γ = 1, and α = 1/(1+ω) for unbiased compressors and 1 for contractive ones.
//
// line_search = armijo: x^{t+1} = x^t − γ 2^{−s} v with the smallest s such that
//   f(x^{t+1}) ≤ f(x^t) − c γ 2^{−s} ⟨g, v⟩.
// Each trial point takes one round. Clients reply as usual; the server discards their replies if the point
// fails. The model is the last point that did not fail.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "algorithms/core/params.h"
#include "algorithms/core/vector_ops.h"
#include "algorithms/support/mirror.h"
#include "algorithms/support/server_base.h"
#include "algorithms/support/symmetric.h"
#include "base/config_error.h"
#include "gradwire/oracle.h"

namespace gradwire {

struct FedNlOption {
  static constexpr std::array<std::string_view, 2> words = {"1", "2"};
};
struct FedNlInit {
  static constexpr std::array<std::string_view, 2> words = {"hessian", "zero"};
};
struct FedNlSearch {
  static constexpr std::array<std::string_view, 2> words = {"none", "armijo"};
};

struct FedNlParams {
  static constexpr AlgorithmTraits traits{
      .name = "fednl",
      .summary = "Newton's method on learned, compressed Hessians",
      .reference = "Safaryan, Islamov, Qian, Richtarik, arXiv:2106.02969",
      .compressor_class = CompressorClass::kEither,
      .needs_all_replies = true,
      .partial = false,
      .client_state = ClientState::kMirrored,
      .needs_hessian = true,
  };
  StepSize step_size{.value = 1.0};
  std::optional<double> alpha, mu;
  Choice<FedNlOption> option{1};
  Choice<FedNlInit> init;
  Choice<FedNlSearch> line_search;
  double c = 0.25;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of Newton's step");
    visit("alpha", self.alpha,
          "learning rate of the H_i; theory: 1/(1+omega), or 1 for contractive compressors");
    visit("option", self.option, "2: H + l I | 1: eigenvalues of H raised to mu; the loss may rise");
    visit("mu", self.mu, "least eigenvalue of option 1; theory: the strong convexity of the problem",
          Constraints{.idle_by = idle_if(self.option.is("2"), "option")});
    visit("init", self.init, "start of H_i: hessian | zero");
    visit("line_search", self.line_search, "none | armijo");
    visit("c", self.c, "armijo: share of the linear decrease that a step must reach",
          Constraints{.idle_by = idle_if(self.line_search.is("none"), "line_search")});
  }
  void needs(NeededConstants& constants) const {
    if (option.is("1") && !mu) constants.convexity = "algorithm.mu";
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    const Assumptions assume(traits.name, step_size, theory, warnings);
    step_size.resolve(1);
    const bool unbiased = theory.compressor.unbiased;
    const double most = unbiased ? 1 / (1 + theory.compressor.omega) : 1;
    if (!alpha) alpha = most;
    check_positive(*alpha, "alpha");
    assume.at_most("alpha", *alpha, most, unbiased ? "1/(1 + omega)" : "the largest rate of its theorems");
    if (option.is("1")) {
      mu = need_convexity(mu, theory, "mu");
    } else if (!mu) {
      mu = 0;
    }
    if (!(c > 0 && c < 1)) throw ConfigError("algorithm.c", "must be above 0 and below 1");
  }
};

template <class Real>
struct FedNl {
  using Params = FedNlParams;

  struct Client {
    const RunContext<Real>& run_context;
    std::size_t D;  // number of entries of a triangle
    Real alpha;
    bool starts_whole, sends_l;
    Vec<Real> H_i, l_i;
    PayloadBuffer<Real> grad, S_i;
    bool first = false;                  // true if the proposal is H_i^0 itself
    std::vector<std::uint32_t> support;  // work space
    std::uint32_t support_first = 0;

    Client(const RunContext<Real>& s, const Params& p)
        : run_context(s),
          D(upper_size(s.d)),
          alpha(Real(*p.alpha)),
          starts_whole(p.init.is("hessian")),
          sends_l(p.option.is("2")),
          H_i(D),
          l_i(1) {}
    static void fields(auto& self, auto&& visit) { visit(self.H_i); }

    bool accepts(const Downlink<Real>& down, bool is_resync) const {
      if (is_resync && down.parts.size() == 0) return true;
      return down.parts.size() == 1 && down.parts[0].shape == Shape::kDense &&
             down.parts[0].dim == (is_resync ? D : run_context.d);
    }
    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      Vec<Real>& g = ctx.scratch.vec(0, x.size());
      Vec<Real>& difference = ctx.scratch.vec(1, D);
      const double loss = ctx.oracle.loss_and_gradient(x, {}, g);
      if (!ctx.oracle.hessian(x, difference))
        throw std::runtime_error("fednl needs Hessians, but this problem has no closed form for them");
      Uplink<Real> up = reply_of(down, loss, grad.whole(g));
      first = ctx.first && starts_whole;
      subtract_shift(difference, ctx.draw_key(down.round, 1), ctx);
      if (sends_l) l_i[0] = Real(frobenius_norm<Real>(difference, run_context.d));
      if (first) {
        S_i.whole(difference);
      } else {
        compress(ctx.compressor, difference, ctx.draw_key(down.round, 1), ctx.scratch, S_i);
      }
      up.parts.push_back(S_i.view());
      if (sends_l) up.parts.push_back(Payload<Real>::dense(l_i));
      return up;
    }
    // Subtracts H_i from `difference`. If the compressor only reads entries that are known beforehand,
    // subtracts only these, unless l_i or the first message needs every entry.
    void subtract_shift(Vec<Real>& difference, const RngKey& key, const ClientContext<Real>& ctx) {
      const auto dim = static_cast<std::uint32_t>(D);
      const bool oblivious =
          std::holds_alternative<RandK>(ctx.compressor) || std::holds_alternative<RandSeqK>(ctx.compressor);
      const auto count = static_cast<std::size_t>(constants(ctx.compressor, D, run_context.n).zeta);
      const auto sees = [&](Shape shape) {
        return oblivious && !sends_l && !first &&
               redraw_support(ctx.compressor, shape, count, dim, key, support, support_first);
      };
      if (sees(Shape::kRange)) {
        for (std::size_t k = 0; k < count; ++k) {
          const std::size_t j = (support_first + k) % D;
          difference[j] -= H_i[j];
        }
      } else if (sees(Shape::kSparse)) {
        for (const std::uint32_t j : support) difference[j] -= H_i[j];
      } else {
        axpy<Real>(Real(-1), H_i, difference);
      }
    }
    void commit() { add_decoded<Real>(S_i.view(), first ? Real(1) : alpha, H_i); }
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>&) { adopt_vector(resync, D, H_i); }
  };

  struct Server {
    static constexpr std::uint32_t kMaxHalvings = 40;
    static constexpr double kSmallest = 1e-12;  // least eigenvalue if H + l I is not positive definite

    const RunContext<Real>& run_context;
    std::size_t D;
    double gamma, mu, c;
    Real alpha;
    bool regularised, searches, starts_whole;  // regularised: option 2
    Vec<Real> x, trial;                        // trial is the broadcast point
    Vec<Real> g, H;
    std::vector<double> direction;  // −v
    double f = 0, slope = 0, step = 0;
    std::uint32_t t = 0, halvings = 0;
    Mirror<Real> H_of;
    SymmetricSolver solver;

    Server(const RunContext<Real>& s, const Params& p)
        : run_context(s),
          D(upper_size(s.d)),
          gamma(*p.step_size.value),
          mu(*p.mu),
          c(p.c),
          alpha(Real(*p.alpha)),
          regularised(p.option.is("2")),
          searches(p.line_search.is("armijo")),
          starts_whole(p.init.is("hessian")),
          x(s.x0),
          trial(s.x0),
          g(s.d),
          H(D),
          direction(s.d),
          H_of(s),
          solver(s.d) {}
    static void fields(auto& self, auto&& visit) {
      visit(self.x);
      visit(self.trial);
      visit(self.H);
      visit(self.direction);
      visit(self.f);
      visit(self.slope);
      visit(self.step);
      visit(self.t);
      visit(self.halvings);
      visit(self.H_of.rows());
    }

    Downlink<Real> broadcast() const { return {t, 0, {Payload<Real>::dense(trial)}}; }
    std::optional<Downlink<Real>> resync(ClientId i, ReplyStatus) const { return H_of.restore(i, t); }
    bool accepts(const UplinkView<Real>& up) const {
      const auto& parts = up.parts;
      return parts.size() == (regularised ? 3 : 2) && parts[0].dim == run_context.d && parts[1].dim == D &&
             (!regularised || (parts[2].shape == Shape::kDense && parts[2].dim == 1));
    }

    bool may_refuse() const { return searches; }
    bool apply(Replies<Real> uplinks) {
      const double f_trial = mean_of(uplinks, [](const UplinkView<Real>& up) { return up.loss; });
      const bool failed = searches && t > 0 && halvings < kMaxHalvings && !(f_trial <= f + c * step * slope);
      ++t;
      if (failed) {
        step /= 2;
        ++halvings;
        move();
        return false;
      }
      x = trial;
      f = f_trial;
      newton_step(uplinks);
      return true;
    }
    // Returns the broadcast point, or with a line search the last point that did not fail.
    View<Real> model() const { return searches ? x : trial; }

   private:
    double mean_of(Replies<Real> uplinks, auto&& value) const {
      const std::vector<double> values = values_of<Real>(run_context, uplinks, value);
      double sum = 0;
      for (std::size_t k = 0; k < values.size(); ++k) {
        const double w =
            run_context.weights.empty() ? 1.0 / run_context.n : run_context.weights[uplinks[k].client];
        sum += w * values[k];
      }
      return sum;
    }
    void move() {
      for (std::size_t j = 0; j < x.size(); ++j) trial[j] = x[j] + Real(step * direction[j]);
    }
    void newton_step(Replies<Real> uplinks) {
      const bool first = t == 1 && starts_whole;
      if (first) learn(uplinks, Real(1));  // H^0 = mean H_i^0
      std::fill(g.begin(), g.end(), Real(0));
      add_weighted<Real>(run_context, uplinks, 0, Real(1), g);
      direction.assign(g.begin(), g.end());
      if (regularised) {
        const double l =
            first ? 0 : mean_of(uplinks, [](const UplinkView<Real>& up) { return up.parts[2].values[0]; });
        if (!solver.template solve<Real>(H, l, direction))
          solver.template solve_projected<Real>(H, std::max(l, kSmallest), direction);
      } else {
        solver.template solve_projected<Real>(H, mu, direction);
      }
      slope = 0;
      for (std::size_t j = 0; j < g.size(); ++j) {
        direction[j] = -direction[j];
        slope += static_cast<double>(g[j]) * direction[j];
      }
      step = gamma;
      halvings = 0;
      move();
      if (!first) learn(uplinks, alpha);
    }
    void learn(Replies<Real> uplinks, Real rate) {
      add_weighted<Real>(run_context, uplinks, 1, rate, H);
      for (const auto& up : uplinks) H_of.add(up, 1, rate);
    }
  };
};

}  // namespace gradwire
