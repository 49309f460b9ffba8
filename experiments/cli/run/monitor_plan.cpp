#include "experiments/cli/run/monitor_plan.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/config_error.h"
#include "simulation/optimum/f_star.h"

namespace gradwire {

MonitorPlan monitor_plan(const RunPlan& plan) {
  const ExperimentSpec& e = plan.experiment;
  MonitorPlan monitor;
  monitor.of = monitored(algorithm_spec(e), plan.theory());
  const Lyapunov& l = monitor.of.lyapunov;
  if (e.run.evaluate_every == 0)
    throw ConfigError("run.monitor", "monitor needs rows of metrics.csv, but evaluate_every is 0");
  if (l.shifts > 0 && !keep_client_state_replicas(e, false))
    throw ConfigError(
        "server.client_state_replicas",
        "run.monitor reads replicas of the clients' states: client_state_replicas must be \"auto\" or "
        "\"true\"");
  if (l.gap > 0 && !has_minimum(e.problem))
    throw ConfigError(
        "run.monitor",
        "the theorem is about f - f*, and this problem has no minimum; give problem.lambda above "
        "0, or write monitor = false");
  if (l.gap > 0) monitor.f_star = FStars(cache_folder()).of(e, {}).value;
  if (l.needs_f_star() && !monitor.f_star)
    throw ConfigError("run.monitor",
                      "the theorem bounds f - f*, but f* of this problem is not known; write "
                      "monitor = false");
  if (!l.needs_optimum()) return monitor;
  std::optional<Optimum> optimum = find_optimum(e, {});
  if (!optimum)
    throw ConfigError("run.monitor",
                      "the theorem bounds the distance to x*, but x* of this problem is not known; write "
                      "monitor = false");
  monitor.optimum = std::move(optimum->x);
  return monitor;
}

}  // namespace gradwire
