// The common base of most server algorithms: the model x, its round, sampled clients, and x broadcast whole.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/core/context.h"
#include "algorithms/core/message.h"
#include "algorithms/core/sampling.h"

namespace gradwire {

template <class Real>
struct ModelServer {
  const RunContext<Real>& run_context;
  Vec<Real> x;
  std::uint32_t t = 0;

  explicit ModelServer(const RunContext<Real>& s) : run_context(s), x(s.x0) {}
  static void fields(auto& self, auto&& visit) {
    visit(self.x);
    visit(self.t);
  }

  void cohort(std::vector<ClientId>& out) const {
    sample_cohort(run_context.seed, t, run_context.n, run_context.algorithm.participation, out);
  }
  Downlink<Real> broadcast() const { return {t, 0, {Payload<Real>::dense(x)}}; }
  View<Real> model() const { return x; }
};

}  // namespace gradwire
