// EF21-W — Richtárik, Gasanov, Burlachenko, arXiv:2402.10774, Algorithm 3: EF21 (ef21.h) on functions
// weighted by their smoothness, w_i = L_i / Σ_j L_j.
//
//   c_i = C(∇f_i(x^t)/(n w_i) − g_i),  g_i ← g_i + c_i     client i, sends c_i
//   g ← g + Σ_{i∈S} w_i c_i,  x^{t+1} = x^t − γ g           server, sends x^{t+1}
//
// Theory: γ = 1/(L + L_avg ξ(α)) (Theorem 1), where L_avg, the mean of the L_i, replaces L~ of EF21. With mu,
// the step of ef21.h changes in the same way. With clients.weights v_i, f = Σ v_i f_i, and the weights of the
// server's sum are n v_i w_i. For any w, the constant √(Σ v_i w_i Σ v_i L_i²/w_i) replaces L_avg, because
//   ‖g − ∇f‖² ≤ (Σ n v_i w_i) Σ n v_i w_i ‖g_i − ∇f_i/(n w_i)‖²,
// and ∇f_i/(n w_i) has the Lipschitz constant L_i/(n w_i). For w_i = L_i / Σ L_j the constant is smallest,
// L_avg.
#pragma once

#include "algorithms/support/ef21_core.h"

namespace gradwire {

struct Ef21WParams : Ef21PlParams {
  static constexpr AlgorithmTraits traits{
      .name = "ef21_w",
      .summary = "EF21 with clients weighted by their smoothness L_i",
      .reference = "Richtarik, Gasanov, Burlachenko, arXiv:2402.10774",
      .compressor_class = CompressorClass::kContractive,
      .strict = true,
      .client_state = ClientState::kMirrored,
  };
  std::vector<double> w;

  static void fields(auto& self, auto&& visit) {
    Ef21PlParams::fields(self, visit);
    visit("w", self.w, "n weights in one string, \"0.2 0.5 0.3\"; theory: L_i / sum L_j");
  }
  // The server sends all weights in the handshake, whose messages are small.
  static constexpr std::uint32_t kMaxClients = 2000;

  // Returns the constant that replaces L~.
  double spread(const Smoothness& s) const {
    double first = 0, second = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double v_i = s.weights.empty() ? 1.0 / static_cast<double>(w.size()) : s.weights[i];
      first += v_i * w[i];
      second += v_i * s.L_i[i] * s.L_i[i] / w[i];
    }
    return std::sqrt(first * second);
  }
  void needs(NeededConstants& constants) const {
    if (w.empty() || !step_size.value)
      constants.smoothness = w.empty() ? "algorithm.w" : "algorithm.step_size";
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (theory.n > kMaxClients)
      throw ConfigError("algorithm.name",
                        "ef21_w supports at most " + std::to_string(kMaxClients) + " clients; use ef21");
    const bool own = !w.empty();
    if (!own) {
      const Smoothness& s = need_smoothness(theory, "algorithm.w");
      double sum = 0;
      for (const double L_i : s.L_i) sum += L_i;
      for (const double L_i : s.L_i) w.push_back(sum > 0 ? L_i / sum : 1.0 / theory.n);
    }
    if (w.size() != theory.n)
      throw ConfigError("algorithm.w", std::to_string(w.size()) + " weights are given for " +
                                           std::to_string(theory.n) + " clients");
    double sum = 0;
    for (const double w_i : w) {
      check_positive(w_i, "w");
      sum += w_i;
    }
    constexpr double kTolerance = 1e-3;  // tolerates weights with few digits
    if (std::abs(sum - 1) > kTolerance)
      throw ConfigError("algorithm.w",
                        "the weights add up to " + number_text(sum) + ", not to 1; divide each by this sum");
    const double pl = mu.resolve(theory);
    resolve_step(theory, warnings, [&] {
      const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
      return ef21_step(theory, own ? spread(s) : s.L_avg(), pl);
    });
  }
};

template <class Real>
struct Ef21W {
  using Params = Ef21WParams;

  struct Client : Ef21CoreClient<Real> {
    using Base = Ef21CoreClient<Real>;
    std::vector<double> w;

    Client(const RunContext<Real>& s, const Params& p) : Base(s, p), w(p.w) {}

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      Vec<Real>& r = ctx.scratch.vec(0, x.size());
      const double loss = ctx.oracle.loss_and_gradient(x, {}, r);
      const Real scale = Real(1 / (static_cast<double>(this->run_context.n) * w[ctx.client]));
      for (Real& v : r) v *= scale;
      return this->propose(r, loss, down, ctx);
    }
  };

  struct Server : Ef21CoreServer<Real> {
    using Base = Ef21CoreServer<Real>;
    std::vector<double> w;

    Server(const RunContext<Real>& s, const Params& p) : Base(s, p), w(p.w) {}

    void apply(Replies<Real> uplinks) {
      // The client divides by n w_i, so the server's weight is n v_i w_i, where v_i is the weight in f.
      const auto weight = [&](ClientId i) {
        return Real(w[i]) * (this->run_context.weights.empty()
                                 ? Real(1)
                                 : this->run_context.weight(i) * Real(this->run_context.n));
      };
      add_by<Real>(this->run_context, uplinks, 0, weight, this->g);
      for (const auto& up : uplinks) this->g_of.add(up, 0, Real(1));
      axpy<Real>(-this->gamma_now(), this->g, this->x);
      ++this->t;
    }
  };
};

}  // namespace gradwire
