#pragma once

#include <filesystem>
#include <string>

#include "config/run_plan.h"
#include "simulation/simulate.h"

namespace gradwire {

// Returns the line that ends a run: the folder of its results and the figure, f - f* if f* is known, the step
// sizes and where they come from, and the simulated seconds of a run on the virtual clock. `folder` is as the
// user should see it.
std::string last_line(const RunPlan& plan, const RunResult& result, const std::filesystem::path& folder);

}  // namespace gradwire
