// What run.monitor needs to know of a run before it begins.
#pragma once

#include "config/run_plan.h"
#include "simulation/monitor.h"

namespace gradwire {

// The Lyapunov function of the algorithm's theorem, and f* and x* where it needs them. Throws ConfigError
// where no theorem covers the run, DataError where the data for f* or x* cannot be read.
MonitorPlan monitor_plan(const RunPlan& plan);

}  // namespace gradwire
