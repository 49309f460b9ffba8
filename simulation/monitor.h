// Watches a run against the theorem of its algorithm: run.monitor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "engine/client_objectives.h"
#include "rounds/round_loop.h"

namespace gradwire {

// What a monitor must know beside the run itself.
struct MonitorPlan {
  Monitored of;
  std::optional<double>
      f_star;  // nothing: f stands in place of f − f*, which a theorem without a rate allows
  std::vector<double> optimum;  // x*, shape (d); empty where the theorem does not need it
};

// The Lyapunov function Ψ and its bound in every row of the metrics. Where the theorem speaks of what the
// round at x^t makes, row k has Ψ^{k−1}, and row 0 has nothing. Costs a full gradient of every client a row,
// two where the theorem needs those at x*.
template <class Real>
class Monitor {
 public:
  Monitor(MonitorPlan plan, std::shared_ptr<const RunContext<Real>> run_context,
          std::shared_ptr<const ClientObjectives<Real>> functions);

  // The round from x^t on begins: its replies are there.
  void begin_round(View<Real> x);
  // Rounds 0, ..., `rounds` − 1 are done.
  void end_round(std::uint32_t rounds, const ServerAlgorithm<Real>& server);
  // Row `record.round`, of the server as it is.
  void fill(RoundRecord& record, const ServerAlgorithm<Real>& server);

  // One line on the run: whether it crossed its bound, and if so where first, how far, and what that says.
  std::string verdict() const;
  bool crossed() const { return crossings_ > 0; }

 private:
  double value(View<Real> x, const LyapunovState<Real>& state);
  void compare(std::uint32_t t, double value, double bound);

  const MonitorPlan plan_;
  const std::shared_ptr<const RunContext<Real>> run_context_;
  std::unique_ptr<RebindableOracle<Real>> oracle_;
  Vec<Real> gradient_, x_star_, x_before_;  // x_before_: where the last round began
  std::vector<double> mean_;
  double at_optimum_ = 0;        // Σ w_i ‖∇f_i(x*)‖²
  double size_ = 0;              // of what the last Ψ is a difference of, for its rounding
  std::optional<double> start_;  // Ψ^0

  std::uint32_t rows_ = 0, crossings_ = 0, first_ = 0;  // first_: the round of the first crossing
  double first_value_ = 0, first_bound_ = 0, largest_share_ = 0;
};

}  // namespace gradwire
