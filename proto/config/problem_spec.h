#pragma once

#include "engine/problems/problem.h"

namespace gradwire {

namespace proto {
class Experiment;
}

// [problem], clients.count and seed as the engine takes them. REQUIRES: check_experiment() passes.
ProblemSpec problem_spec(const proto::Experiment& experiment);

// The entry of problem_kinds() with that name. Throws std::logic_error when there is none.
const ProblemKind& find_problem_kind(const std::string& name);

}  // namespace gradwire
