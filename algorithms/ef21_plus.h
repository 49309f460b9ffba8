// EF21+ — Richtárik, Sokolov, Fatkhullin, arXiv:2106.05203, Algorithm 3: each client takes the better of two
// estimates.
//
//   b_i = C(∇f_i(x^t)),  m_i = g_i + C(∇f_i(x^t) − g_i)     client i
//   g_i ← the one nearer to ∇f_i(x^t) (m_i if equal)       sends its payload and one bit that names it
//   g = (1/n) Σ g_i,  x^{t+1} = x^t − γ g                   server, which keeps all g_i; sends x^{t+1}
//
// The number of parts of the message encodes the bit: one payload for m_i, and a second, empty payload for
// b_i. g_i starts as in ef21_core.h. Theory: EF21's step, also with mu (Theorems 3 and 4, for deterministic
// compressors).
#pragma once

#include <algorithm>

#include "algorithms/support/ef21_core.h"

namespace gradwire {

struct Ef21PlusParams : Ef21PlParams {
  static constexpr AlgorithmTraits traits{
      .name = "ef21_plus",
      .summary = "EF21 or plain compression, whichever is nearer, per client and round",
      .reference = "Richtarik, Sokolov, Fatkhullin, arXiv:2106.05203",
      .compressor_class = CompressorClass::kContractive,
      .strict = true,
      .client_state = ClientState::kMirrored,
      .flag_bits_up = 1,
  };
  void resolve(const Theory& theory, Warnings& warnings) {
    const double pl = mu.resolve(theory);
    resolve_step(theory, warnings, [&] {
      return ef21_step(theory, need_smoothness(theory, "algorithm.step_size").L_tilde(), pl);
    });
  }
};

template <class Real>
struct Ef21Plus {
  using Params = Ef21PlusParams;

  // Applies a used reply to g_i, at both ends. Two parts, the second of them empty, mean that b_i replaces
  // g_i.
  static void follow(const UplinkView<Real>& used, Vec<Real>& g_i) {
    if (used.parts.size() == 2) std::fill(g_i.begin(), g_i.end(), Real(0));
    add_decoded<Real>(used.parts[0], Real(1), g_i);
  }

  struct Client {
    const RunContext<Real>& run_context;
    bool first_whole;
    Vec<Real> g_i;
    PayloadBuffer<Real> difference, plain;

    Client(const RunContext<Real>& s, const Params& p)
        : run_context(s), first_whole(p.init.is("gradient")), g_i(s.d) {}
    static void fields(auto& self, auto&& visit) { visit(self.g_i); }

    // Returns ‖start + decode(p) − grad‖²; `work` is scratch. An empty start means 0.
    static double error(View<Real> start, const Payload<Real>& p, View<Real> grad, Vec<Real>& work) {
      work.assign(grad.size(), Real(0));
      if (!start.empty()) std::copy(start.begin(), start.end(), work.begin());
      add_decoded<Real>(p, Real(1), work);
      double sum = 0;
      for (std::size_t j = 0; j < grad.size(); ++j) {
        const double e = static_cast<double>(work[j]) - static_cast<double>(grad[j]);
        sum += e * e;
      }
      return sum;
    }

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      Vec<Real>& grad = ctx.scratch.vec(0, x.size());
      Vec<Real>& v = ctx.scratch.vec(1, x.size());
      const double loss = ctx.oracle.loss_and_gradient(x, {}, grad);
      for (std::size_t j = 0; j < x.size(); ++j) v[j] = grad[j] - g_i[j];
      if (ctx.first && first_whole) return reply_of(down, loss, difference.whole(v));
      compress(ctx.compressor, v, ctx.draw_key(down.round), ctx.scratch, difference);
      Vec<Real>& copy = ctx.scratch.vec(1, x.size());
      copy = grad;
      compress(ctx.compressor, copy, ctx.draw_key(down.round), ctx.scratch, plain);
      Vec<Real>& work = ctx.scratch.vec(1, x.size());
      const bool replaces = error({}, plain.view(), grad, work) < error(g_i, difference.view(), grad, work);
      if (!replaces) return reply_of(down, loss, difference.view());
      return reply_of(down, loss, Parts<Real>{plain.view(), Payload<Real>::nothing(run_context.d)});
    }
    void commit(const Uplink<Real>& used) { follow(used, g_i); }
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>&) {
      adopt_vector(resync, run_context.d, g_i);
    }
  };

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::run_context, Base::t, Base::x;
    bool starts_at_zero;
    double gamma;
    Schedule schedule;
    std::vector<Vec<Real>> g_of;  // all g_i; empty until the first reply
    Vec<Real> g;                  // work space

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s),
          starts_at_zero(p.init.is("zero")),
          gamma(*p.step_size.value),
          schedule(p.schedule),
          g_of(s.n),
          g(s.d) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.g_of);
    }

    void cohort(std::vector<ClientId>& out) const {
      if (t > 0) return Base::cohort(out);
      out.clear();
      if (!starts_at_zero) all_clients(run_context.n, out);
    }
    bool accepts(const UplinkView<Real>& up) const {
      return (up.parts.size() == 1 || (up.parts.size() == 2 && up.parts[1].shape == Shape::kNothing)) &&
             up.parts[0].dim == run_context.d;
    }
    std::optional<Downlink<Real>> resync(ClientId i, ReplyStatus) const {
      Downlink<Real> down;
      down.round = t;
      if (!g_of[i].empty()) down.parts = {Payload<Real>::dense(g_of[i])};
      return down;
    }
    void apply(Replies<Real> uplinks) {
      for (const auto& up : uplinks) {
        Vec<Real>& g_i = g_of[up.client];
        g_i.resize(run_context.d);
        follow(up, g_i);
      }
      std::fill(g.begin(), g.end(), Real(0));
      for (ClientId i = 0; i < run_context.n; ++i)
        if (!g_of[i].empty()) axpy<Real>(run_context.weight(i), g_of[i], g);
      axpy<Real>(-Real(gamma * schedule.factor(t)), g, x);
      ++t;
    }
  };
};

}  // namespace gradwire
