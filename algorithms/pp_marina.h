// PP-MARINA — Gorbunov, Burlachenko, Li, Richtárik, arXiv:2102.07845, Algorithm 4: MARINA (marina.h) with few
// clients in the compressed rounds.
//
//   c_t = 1:  every client sends ∇f_i(x^t), g^t = (1/n) Σ ∇f_i(x^t)
//   c_t = 0:  r clients, drawn with replacement, send C(∇f_i(x^t) − ∇f_i(x^{t−1})) once per draw;
//             g^t = g^{t−1} + (1/r) Σ over the draws
//
// Clients have no state: compressed rounds broadcast x^t and x^{t−1}. A client drawn k times sends min(k, 4)
// messages; if k > 4, the fourth is the sum of the rest. With clients.weights, the draws of client i have the
// factor n w_i.
//
// Theory: p = ζ r/(d n), γ = 1/(L (1 + √((1−p)(1+ω)/(p r)))), L = L_max. With weights, the second moment of a
// draw is n Σ w_i² ‖..‖², so (1+ω) gets the factor n max w_i. With mu, the step changes as in marina.h
// (Theorem 4.2).
#pragma once

#include "algorithms/marina.h"

namespace gradwire {

struct PpMarinaParams : MarinaCoreParams {
  static constexpr AlgorithmTraits traits{
      .name = "pp_marina",
      .summary = "MARINA with r random clients in the compressed rounds",
      .reference = "Gorbunov et al., arXiv:2102.07845",
      .compressor_class = CompressorClass::kUnbiased,
      .strict = true,
      .needs_all_replies = true,
      .theory_knows_sampling = true,
  };
  std::uint32_t r = 0;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("p", self.p, "probability of a whole round; theory: zeta r/(d n)");
    visit("r", self.r, "clients drawn for a compressed round; 0 means round(clients.participation * n)");
    visit("mu", self.mu, kPlMeaning, pl_rules(self.step_size));
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    const std::uint32_t of_participation = cohort_size(theory.n, theory.participation);
    if (r == 0) r = of_participation;
    if (theory.participation < 1 && r != of_participation)
      warnings.push_back("participation has no effect with r = " + std::to_string(r));
    resolve_p(zeta_share(theory) * r / theory.n, theory, warnings);
    const double pl = mu.resolve(theory);
    if (step_size.value) return;
    const double L = need_smoothness(theory, "algorithm.step_size").L_max();
    const double moment = (1 + theory.compressor.omega) * theory.skew();
    const double error = error_weight(pl) * (1 - *p) * moment / (*p * r);
    step_size.resolve(pl_step(1 / (L * (1 + std::sqrt(error))), *p, pl));
  }
};

template <class Real>
struct PpMarina {
  using Params = PpMarinaParams;

  // Returns the number of messages in the reply of a client that was drawn `times` times.
  static std::size_t messages(std::uint32_t times) { return std::min<std::size_t>(times, kMaxParts); }

  struct Client {
    const RunContext<Real>& run_context;
    std::uint32_t r;
    std::array<PayloadBuffer<Real>, kMaxParts> sent;

    Client(const RunContext<Real>& s, const Params& p) : run_context(s), r(p.r) {}
    static void fields(auto&, auto&&) {}

    bool accepts(const Downlink<Real>& down, bool is_resync) const {
      return accepts_points(down, is_resync, run_context.d);
    }
    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      Vec<Real>& v = ctx.scratch.vec(0, x.size());
      if (down.flags == kWholeRound) {
        const double loss = ctx.oracle.loss_and_gradient(x, {}, v);
        return reply_of(down, loss, sent[0].whole(v));
      }
      Vec<Real>& difference = ctx.scratch.vec(1, x.size());
      const double loss = gradient_difference<Real>(ctx, x, down.parts[1].values, {}, difference, v);
      const std::uint32_t times = times_drawn(ctx.seed, down.round, run_context.n, r, ctx.client);
      Uplink<Real> up = reply_of(down, loss, Parts<Real>{});
      for (std::uint32_t k = 0; k < messages(times); ++k) {
        if (k + 1 == kMaxParts && times > kMaxParts) {
          send_rest(difference, k, times, down.round, ctx);
        } else {
          compress_draw(difference, k, down.round, ctx, sent[k]);
        }
        up.parts.push_back(sent[k].view());
      }
      return up;
    }
    void commit() {}

   private:
    void compress_draw(const Vec<Real>& difference, std::uint32_t draw, std::uint32_t t,
                       const ClientContext<Real>& ctx, PayloadBuffer<Real>& to) {
      Vec<Real>& copy = ctx.scratch.vec(0, difference.size());
      copy = difference;
      compress(ctx.compressor, copy, ctx.draw_key(t, draw), ctx.scratch, to);
    }
    // Writes the uncompressed sum of the draws first, ..., times−1 to sent[first].
    void send_rest(const Vec<Real>& difference, std::uint32_t first, std::uint32_t times, std::uint32_t t,
                   const ClientContext<Real>& ctx) {
      Vec<Real>& sum = ctx.scratch.vec(2, difference.size());
      std::fill(sum.begin(), sum.end(), Real(0));
      for (std::uint32_t draw = first; draw < times; ++draw) {
        compress_draw(difference, draw, t, ctx, sent[first]);
        add_decoded<Real>(sent[first].view(), Real(1), sum);
      }
      sent[first].whole(sum);
    }
  };

  struct Server : TwoPointServer<Real> {
    using Base = TwoPointServer<Real>;
    using Base::run_context, Base::t, Base::x, Base::g, Base::whole;
    std::uint32_t r;

    Server(const RunContext<Real>& s, const Params& p) : Base(s, p), r(p.r) {}

    void cohort(std::vector<ClientId>& out) const { this->drawn_cohort(r, out); }
    bool accepts(const UplinkView<Real>& up) const {
      const std::size_t expected =
          whole() ? 1 : messages(times_drawn(run_context.seed, t, run_context.n, r, up.client));
      return up.parts.size() == expected && all_of_length(up.parts, run_context.d);
    }
    void apply(Replies<Real> uplinks) {
      if (whole()) {
        std::fill(g.begin(), g.end(), Real(0));
        add_weighted<Real>(run_context, uplinks, 0, Real(1), g);
      } else {
        add_parts_by<Real>(
            run_context, uplinks, 0, [](const auto& up) { return up.parts.size(); }, Real(1),
            [this](ClientId i) { return Real(run_context.n) * run_context.weight(i) / Real(r); }, g);
      }
      this->step();
    }
  };
};

}  // namespace gradwire
