// Forward gradients — Baydin, Pearlmutter, Syme, Wood, Torr, arXiv:2202.08587. FwdLLM (Xu et al.,
// arXiv:2308.13894) uses them in federated learning: its clients send a few numbers per round.
//
//   v_{i,k}: K directions of client i, entries independent ±1 (or N(0, 1)), drawn from (seed, i, t)
//   s_{i,k} = ⟨∇f_i(x^t; ξ_i), v_{i,k}⟩                       client i, by forward mode; sends s_{i,1..K}
//   g^t     = mean_{i∈S} (1/K) Σ_k s_{i,k} v_{i,k}            server, which draws the v_{i,k} again
//   x^{t+1} = x^t − γ g^t                                     sends x^{t+1}
//
// The estimate g_i = (1/K) Σ_k s_{i,k} v_{i,k} has E g_i = ∇f_i and E‖g_i‖² = (1 + ω) ‖∇f_i‖², where
// ω = (d−1)/K for ±1 and (d+1)/K for N(0, 1). So it is an unbiased compressor that needs no backward pass.
// Theory (f_i convex), as for dcgd: γ ≤ 1/(L + 2 L_max A), where A = ω/n, or with client weights w_i
// A = ω max w_i.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/core/params.h"
#include "algorithms/core/vector_ops.h"
#include "algorithms/support/gradients.h"
#include "algorithms/support/server_base.h"
#include "base/config_error.h"
#include "base/random.h"

namespace gradwire {

struct DirectionWords {
  static constexpr std::array<std::string_view, 2> words{"rademacher", "gaussian"};
};

// The random directions of one reply. next() writes them one after another.
template <class Real>
class DirectionStream {
 public:
  DirectionStream(const RngKey& key, bool gaussian)
      : stream_(key),
        normal_(key.seed, "directions", std::uint64_t{key.client} << 32 | key.round),
        gaussian_(gaussian) {}

  void next(Out<Real> v) {
    if (gaussian_) {
      numbers_.resize(v.size());
      normal_.normals(numbers_);
      std::transform(numbers_.begin(), numbers_.end(), v.begin(),
                     [](double a) { return static_cast<Real>(a); });
      return;
    }
    std::uint64_t bits = 0;
    for (std::size_t j = 0; j < v.size(); ++j, bits >>= 1) {
      if (j % 64 == 0) bits = stream_.next();
      v[j] = (bits & 1) != 0 ? Real(1) : Real(-1);
    }
  }

 private:
  RngStream stream_;
  Random normal_;
  bool gaussian_;
  std::vector<double> numbers_;
};

struct FwdGradParams {
  static constexpr std::uint32_t kMostDirections = 1'000'000, kUsualDirections = 10;
  static constexpr AlgorithmTraits traits{
      .name = "fwd_grad",
      .summary = "directional derivatives along random directions: a few numbers up, no backward pass",
      .reference = "Baydin et al., arXiv:2202.08587; Xu et al., arXiv:2308.13894",
      .compressor_class = CompressorClass::kIdentity,
      .stochastic = true,
  };
  StepSize step_size;
  std::uint32_t directions = 0;
  Choice<DirectionWords> distribution;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("directions", self.directions,
          "K, derivatives that a client computes and sends in a round; 0 means min(10, d)");
    visit("distribution", self.distribution,
          "entries of the directions: rademacher (-1 and 1) | gaussian (normal)");
  }
  bool is_gaussian() const { return distribution.is("gaussian"); }
  void resolve(const Theory& theory, Warnings& warnings) {
    const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(theory.d, kMostDirections));
    if (directions == 0) directions = std::min(kUsualDirections, most);
    if (directions > most)
      throw ConfigError("algorithm.directions",
                        "must be at most " + std::to_string(most) +
                            ", one for each coordinate; for more work a round use gd");
    resolve_step(theory, warnings);
  }

 private:
  void resolve_step(const Theory& theory, Warnings& warnings) {
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    if (!s.convex)
      warnings.push_back(
          "fwd_grad: the theorem of the step size assumes convex f_i, but these are not convex");
    const double d = static_cast<double>(theory.d), omega = (is_gaussian() ? d + 1 : d - 1) / directions;
    step_size.resolve(1 / (s.L + 2 * s.L_max() * omega * theory.skew() / theory.n));
  }
};

template <class Real>
struct FwdGrad {
  using Params = FwdGradParams;

  struct Client {
    const RunContext<Real>& run_context;
    bool gaussian;
    Vec<Real> s_i;

    Client(const RunContext<Real>& s, const Params& p)
        : run_context(s), gaussian(p.is_gaussian()), s_i(p.directions) {}
    static void fields(auto&, auto&&) {}

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      const Batch batch = batch_of(run_context, ctx, down.round);
      Vec<Real>& v = ctx.scratch.vec(0, x.size());
      DirectionStream<Real> directions(ctx.draw_key(down.round), gaussian);
      double loss = 0;
      for (Real& s : s_i) {
        directions.next(v);
        const Directional<Real> along = ctx.oracle.directional(x, v, batch);
        s = along.derivative;
        loss = along.loss;
      }
      return reply_of(down, loss, Payload<Real>::dense(s_i));
    }
    void commit() {}
  };

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::run_context, Base::t, Base::x;
    Real gamma;
    std::uint32_t K;
    bool gaussian;
    Vec<Real> g_i, v;  // work space
    TreeSum<double> sum;

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s),
          gamma(Real(*p.step_size.value)),
          K(p.directions),
          gaussian(p.is_gaussian()),
          g_i(s.d),
          v(s.d) {}

    bool accepts(const UplinkView<Real>& up) const {
      return up.parts.size() == 1 && up.parts[0].shape == Shape::kDense && up.parts[0].dim == K;
    }
    void apply(Replies<Real> uplinks) {
      sum.begin_part(run_context.d, run_context.mine(), run_context.n);
      for (const UplinkView<Real>& up : of_clients(uplinks, run_context.mine())) {
        estimate(up);
        sum.add(up.client, run_context.weight(up.client), g_i.data());
      }
      const Vec<double> all = total();
      const Real scale = Real(run_context.n) / Real(uplinks.size());
      for (std::size_t j = 0; j < all.size(); ++j) x[j] -= gamma * scale * static_cast<Real>(all[j]);
      ++t;
    }

   private:
    // Computes g_i = (1/K) Σ_k s_{i,k} v_{i,k}.
    void estimate(const UplinkView<Real>& up) {
      DirectionStream<Real> directions({run_context.seed, up.client, t, RngDomain::kCompressor}, gaussian);
      std::fill(g_i.begin(), g_i.end(), Real(0));
      for (const Real s : up.parts[0].values) {
        directions.next(v);
        axpy<Real>(s / Real(K), v, g_i);
      }
    }
    // Returns the sum over all clients that replied, including those of other processes.
    Vec<double> total() {
      if (run_context.communicator != nullptr) return run_context.communicator->sum(sum);
      const auto root = sum.sum();
      return {root.begin(), root.end()};
    }
  };
};

}  // namespace gradwire
