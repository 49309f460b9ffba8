// Compares a run with the theorem of its algorithm (`run.monitor`).
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

// Inputs that only the monitor of a run needs.
struct MonitorPlan {
  Monitored of;
  std::optional<double> f_star;  // if empty, f replaces f − f*, which a theorem without a rate allows
  std::vector<double> optimum;   // x*, shape (d); empty if the theorem does not need it
};

// The Lyapunov function Ψ and its bound, for every row of the metrics. If Ψ^t depends on the result of the
// round at x^t, row k has Ψ^{k−1} and row 0 is empty. Each row costs at most one full gradient of every
// client.
template <class Real>
class Monitor {
 public:
  Monitor(MonitorPlan plan, std::shared_ptr<const RunContext<Real>> run_context,
          std::shared_ptr<const ClientObjectives<Real>> functions);

  // Starts the round at x^t. Call it once the replies of the round have arrived.
  void begin_round(View<Real> x);
  // Ends round `rounds` − 1.
  void end_round(std::uint32_t rounds, const ServerAlgorithm<Real>& server);
  // Fills the row `record.round` from the present state of the server.
  void fill(RoundRecord& record, const ServerAlgorithm<Real>& server);

  // Returns one line of text. If the run crossed its bound, the line says where first, how often, and what
  // that means.
  std::string verdict() const;
  bool crossed() const { return crossings_ > 0; }

 private:
  double value(View<Real> x, const LyapunovState<Real>& state);
  void compare(std::uint32_t t, double value, double bound);

  const MonitorPlan plan_;
  const std::shared_ptr<const RunContext<Real>> run_context_;
  std::unique_ptr<RebindableOracle<Real>> oracle_;
  Vec<Real> gradient_, x_star_, x_before_;  // x_before_: start of the last round
  std::vector<double> mean_;
  double at_optimum_ = 0;        // Σ w_i ‖∇f_i(x*)‖²
  double size_ = 0;              // size of the terms whose difference is the last Ψ, for its rounding
  std::optional<double> start_;  // Ψ^0

  std::uint32_t rows_ = 0, crossings_ = 0, first_ = 0;  // first_: the round of the first crossing
  double first_value_ = 0, first_bound_ = 0, largest_share_ = 0;
};

}  // namespace gradwire
