// The inputs of run.monitor that must be known before a run begins.
#pragma once

#include "config/run_plan.h"
#include "simulation/monitor.h"

namespace gradwire {

// Returns the Lyapunov function of the algorithm's theorem, with f* and x* if it needs them. Throws
// ConfigError if no theorem covers the run, and DataError if the data for f* or x* cannot be read.
MonitorPlan monitor_plan(const RunPlan& plan);

}  // namespace gradwire
