// Gradient coding — Tandon, Lei, Dimakis, Karampatziakis, arXiv:1612.03301, Algorithms 1 and 2: gradient
// descent whose rounds do not wait for the slowest clients, because clients hold copies of each other's data.
//
//   m_i     = Σ_k b_ik ∇f_{P_i(k)}(x^t)       client i, over the r + 1 parts that it holds, sends m_i
//   S       = the clients that reply first
//   g^t     = (1/n) Σ_{i∈S} a_i m_i           server, a with Σ_{i∈S} a_i b_i = 1 in each part
//   x^{t+1} = x^t − γ g^t                     server, sends x^{t+1}
//
// f = (1/n) Σ_j f_j over the parts j; r + 1 = clients.replication. Without replication, client weights w_j
// may replace 1/n. server.quorum gives |S|. Theory, as for gd: γ = 1/L.
//   exact:       any |S| ≥ n − r replies give g^t = ∇f(x^t), so avg_t ‖∇f(x^t)‖² ≤ 2 Δ⁰/(γ T).
//                placement = "groups" is the paper's fractional repetition, "ring" its cyclic repetition.
//                Clients of a group have equal data and send equal bits, so the run has the same bits,
//                whichever replies are late.
//   approximate: all b_ik = 1, and a minimises ‖Σ_{i∈S} a_i b_i − 1‖² = e^t (Raviv, Tamo, Tandon, Dimakis,
//                arXiv:1707.03858), so that ‖g^t − ∇f(x^t)‖² ≤ (e^t/n) (1/n) Σ ‖∇f_j(x^t)‖² and
//                avg_t ‖∇f‖² ≤ 2 Δ⁰/(γ T) + avg_t ‖g^t − ∇f(x^t)‖².
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "algorithms/core/params.h"
#include "algorithms/core/vector_ops.h"
#include "algorithms/support/gradient_code.h"
#include "algorithms/support/server_base.h"
#include "base/config_error.h"

namespace gradwire {

struct RecoveryWords {
  static constexpr std::array<std::string_view, 2> words{"exact", "approximate"};
};

struct CodedGdParams {
  static constexpr AlgorithmTraits traits{
      .name = "coded_gd",
      .summary = "gradient descent from the replies of the fastest clients, with replicated data",
      .reference = "Tandon et al., arXiv:1612.03301",
      .compressor_class = CompressorClass::kIdentity,
      .partial = false,
      .theory_knows_quorum = true,
  };
  StepSize step_size;
  Choice<RecoveryWords> recovery;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step; theory: 1/L");
    visit("recovery", self.recovery,
          "exact: the gradient of f, from any n - r replies (r + 1 = clients.replication); approximate: the "
          "closest to it from any number of replies");
  }
  bool is_exact() const { return recovery.is("exact"); }
  void resolve(const Theory& theory, Warnings&) {
    check_replies(theory);
    check_size(theory);
    if (!step_size.value) step_size.resolve(1 / need_smoothness(theory, "algorithm.step_size").L);
  }
  Lyapunov lyapunov(const Theory& theory) const {
    if (!is_exact()) refuse_monitor("coded_gd: the theorem is about recovery = \"exact\"");
    return gap_of_gradient_descent(*step_size.value, theory);
  }

 private:
  // The largest number of clients in a ring. A round with late replies solves a system of this size in O(n³).
  static constexpr std::uint32_t kMaxRing = 500;

  void check_replies(const Theory& theory) const {
    const std::uint32_t needed = theory.n - (theory.replication.count - 1), replies = replies_of(theory);
    if (is_exact() && replies < needed)
      throw ConfigError("server.quorum",
                        "coded_gd recovers the gradient from " + std::to_string(needed) + " of " +
                            std::to_string(theory.n) + " replies or more, but quorum ends a round with " +
                            std::to_string(replies) +
                            "; raise it, or clients.replication, or write recovery = \"approximate\"");
  }
  static void check_size(const Theory& theory) {
    if (theory.replication.count > 1 && theory.replication.placement == ReplicaPlacement::kRing &&
        theory.n > kMaxRing)
      throw ConfigError("clients.placement", "coded_gd codes a ring of at most " + std::to_string(kMaxRing) +
                                                 " clients; write placement = \"groups\"");
  }
};

template <class Real>
struct CodedGd {
  using Params = CodedGdParams;

  struct Client {
    const RunContext<Real>& run_context;
    GradientCode code;
    PayloadBuffer<Real> m_i;

    Client(const RunContext<Real>& s, const Params& p)
        : run_context(s), code(s.n, s.replication, p.is_exact(), s.seed) {}
    static void fields(auto&, auto&&) {}

    // Sends m_i. If all b_ik are 1, sends m_i / (r + 1) instead: the gradient of the mean over the client's
    // samples.
    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      Vec<Real>& m = ctx.scratch.vec(0, x.size());
      if (code.is_plain()) {
        const double mean_loss = ctx.oracle.loss_and_gradient(x, {}, m);
        return reply_of(down, mean_loss, m_i.whole(m));
      }
      Vec<Real>& g = ctx.scratch.vec(1, x.size());
      const std::vector<double> b = code.factors(ctx.client);
      std::vector<std::uint32_t>& part = ctx.scratch.order;
      part.resize(ctx.oracle.sample_count() / b.size());
      std::fill(m.begin(), m.end(), Real(0));
      double loss = 0;
      for (std::size_t k = 0; k < b.size(); ++k) {
        std::iota(part.begin(), part.end(), static_cast<std::uint32_t>(k * part.size()));
        loss += ctx.oracle.loss_and_gradient(x, part, g) / static_cast<double>(b.size());
        axpy<Real>(Real(b[k]), g, m);
      }
      return reply_of(down, loss, m_i.whole(m));
    }
    void commit() {}
  };

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::run_context, Base::t, Base::x;
    Real gamma;
    GradientCode code;
    std::vector<ClientId> S;  // clients of the last round
    std::vector<double> a;    // weights for S
    Vec<Real> g;              // work space

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s), gamma(Real(*p.step_size.value)), code(s.n, s.replication, p.is_exact(), s.seed), g(s.d) {}

    void apply(Replies<Real> uplinks) {
      decode(uplinks);
      std::fill(g.begin(), g.end(), Real(0));
      const Real replication = code.is_plain() ? Real(run_context.replication.count) : Real(1);
      std::vector<UplinkView<Real>> used;
      std::vector<Real> weights(run_context.n);
      for (std::size_t k = 0; k < uplinks.size(); ++k) {
        if (a[k] == 0) continue;
        used.push_back(uplinks[k]);
        used.back().client = place(uplinks[k].client);
        weights[used.back().client] = Real(a[k]) * replication * run_context.weight(uplinks[k].client);
      }
      add_by<Real>(
          run_context, used, 0, [&](ClientId i) { return weights[i]; }, g);
      axpy<Real>(-gamma, g, x);
      ++t;
    }

   private:
    void decode(Replies<Real> uplinks) {
      std::vector<ClientId> now;
      for (const auto& up : uplinks) now.push_back(up.client);
      if (now == S) return;
      S = std::move(now);
      a = code.weights(S);
    }
    // Returns the place of client i in the order of the sum. All clients of a group have the place of its
    // first client.
    ClientId place(ClientId i) const {
      return run_context.replication.placement == ReplicaPlacement::kGroups
                 ? i - i % run_context.replication.count
                 : i;
    }
  };
};

}  // namespace gradwire
