// COFIG — Zhao, Burlachenko, Li, Richtárik, arXiv:2112.13097, Algorithm 1: shifts with two independent
// samples of clients.
//
//   u_i = C(∇f_i(x^t) − h_i)                              client i in S or S~, sends u_i
//   h_i ← h_i + α u_i                                     client i in S~
//   g = h + (1/|S|) Σ_{i∈S} u_i,  x^{t+1} = x^t − γ g     server, sends x^{t+1}
//   h ← h + (α/n) Σ_{i∈S~} u_i
//
// |S| = |S~| = participation · n; server and clients draw both samples from the seed. If both contain all
// clients, the algorithm is DIANA. Theory, with L = L_max:
//   α = 1/(1+ω),  γ = min(1/(2L), |S|/(5L (1+ω) n^{2/3}), |S|/(5L (1+ω)^{3/2} √n)).
// With client weights w_i, n w_i u_i replaces u_i in the means over S and S~, and L is that of the functions
// n w_i f_i.
#pragma once

#include <algorithm>
#include <iterator>

#include "algorithms/diana.h"

namespace gradwire {

struct CofigParams : ShiftParams {
  static constexpr AlgorithmTraits traits{
      .name = "cofig",
      .summary = "shifts h_i learned on a second, independent sample of clients",
      .reference = "Zhao, Burlachenko, Li, Richtarik, arXiv:2112.13097",
      .compressor_class = CompressorClass::kUnbiased,
      .needs_all_replies = true,
      .client_state = ClientState::kMirrored,
      .theory_knows_sampling = true,
  };
  void resolve(const Theory& theory, Warnings& warnings) {
    resolve_alpha(theory, Assumptions(traits.name, step_size, theory, warnings));
    if (step_size.value) return;
    const double L = need_smoothness(theory, "algorithm.step_size").L_max_weighted();
    const double n = theory.n, S = cohort_size(theory.n, theory.participation),
                 spread = 1 + counted(theory).omega;
    step_size.resolve(std::min({1 / (2 * L), S / (5 * L * spread * std::pow(n, 2.0 / 3)),
                                S / (5 * L * std::pow(spread, 1.5) * std::sqrt(n))}));
  }
};

template <class Real>
struct Cofig {
  using Params = CofigParams;

  struct Client : Diana<Real>::Client {
    using Base = typename Diana<Real>::Client;

    Client(const RunContext<Real>& s, const Params& p) : Base(s, DianaParams{ShiftParams(p), {}}) {}

    void commit(const Uplink<Real>& used) {
      sample_cohort(this->run_context.seed, used.round, this->run_context.n,
                    this->run_context.algorithm.participation, shifted, RngDomain::kShiftCohort);
      if (std::binary_search(shifted.begin(), shifted.end(), used.client)) Base::commit(used);
    }

   private:
    std::vector<ClientId> shifted;  // S~
  };

  struct Server : ShiftServer<Real> {
    using Base = ShiftServer<Real>;
    using Base::run_context, Base::t, Base::x, Base::g;

    Server(const RunContext<Real>& s, const Params& p) : Base(s, p) {}

    void draw(std::vector<ClientId>& out, RngDomain domain) const {
      sample_cohort(run_context.seed, t, run_context.n, run_context.algorithm.participation, out, domain);
    }
    void cohort(std::vector<ClientId>& out) const {
      std::vector<ClientId> S, shifted;
      draw(S, RngDomain::kCohort);
      draw(shifted, RngDomain::kShiftCohort);
      out.clear();
      std::set_union(S.begin(), S.end(), shifted.begin(), shifted.end(), std::back_inserter(out));
    }
    void apply(Replies<Real> uplinks) {
      std::vector<ClientId> members;
      const auto those_in = [&](RngDomain domain) {
        draw(members, domain);
        std::vector<UplinkView<Real>> chosen;
        for (const auto& up : uplinks)
          if (std::binary_search(members.begin(), members.end(), up.client)) chosen.push_back(up);
        return chosen;
      };
      g = this->h;
      add_mean_of_replies<Real>(run_context, those_in(RngDomain::kCohort), 0, Real(1), g);
      this->learn(those_in(RngDomain::kShiftCohort), 0);
      axpy<Real>(-this->gamma, g, x);
      ++t;
    }
  };
};

}  // namespace gradwire
