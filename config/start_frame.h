// The Start frame, which tells clients the plan of a run.
#pragma once

#include <cstdint>
#include <string>

#include "config/run_plan.h"

namespace gradwire {

std::string start_frame(const RunPlan& plan, std::uint64_t run);
// Returns the run id in a frame of start_frame().
std::uint64_t run_of(const std::string& start_frame);

}  // namespace gradwire
