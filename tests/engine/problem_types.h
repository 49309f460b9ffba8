// Problems by the names of their kinds, for tests that run over several kinds.
#pragma once

#include <string>
#include <type_traits>
#include <variant>

#include "engine/problems/problem.h"

namespace gradwire {

// Returns a problem with the defaults of the kind, for one client.
inline ProblemSpec spec_of_type(const std::string& kind) {
  ProblemSpec spec;
  spec.problem = problem_of(kind);
  return spec;
}

// Returns the common part of least_squares and logistic. REQUIRES: the problem is one of them.
inline LinearModel& linear_model(ProblemSpec& spec) {
  LinearModel* linear = nullptr;
  std::visit(
      [&linear](auto& problem) {
        if constexpr (std::is_base_of_v<LinearModel, std::decay_t<decltype(problem)>>) linear = &problem;
      },
      spec.problem);
  return *linear;
}

}  // namespace gradwire
