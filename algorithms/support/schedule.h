// Schedules of a step size over the rounds: gamma_t = gamma * factor(t), t = 0, 1, ...
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>

#include "algorithms/core/params.h"
#include "algorithms/core/spec.h"
#include "base/config_error.h"

namespace gradwire {

struct ScheduleWords {
  static constexpr std::array<std::string_view, 4> words = {"constant", "inverse_sqrt", "inverse", "cosine"};
};

struct Schedule {
  Choice<ScheduleWords> kind;
  std::uint32_t horizon = 0;  // T of the cosine schedule

  static void fields(auto& self, auto&& visit) {
    visit("schedule", self.kind,
          "decay of the step size: constant | inverse_sqrt (1/sqrt(t+1)) | inverse (1/(t+1)) | cosine");
    visit("horizon", self.horizon, "T: rounds until the cosine schedule reaches 0; 0 means run.rounds",
          Constraints{.idle_by = idle_if(!self.kind.is("cosine"), "schedule")});
  }
  // Sets `horizon` if it is not given. Warns if the last steps have no effect, or if no theorem covers the
  // schedule. `steps` is the word for the steps that t counts; theory.rounds is their number.
  void resolve(const Theory& theory, Warnings& warnings, bool step_from_theory,
               std::string_view steps = "rounds") {
    if (kind.is("cosine") && horizon == 0) horizon = theory.rounds;
    if (kind.is("cosine") && horizon == 0)
      throw ConfigError("algorithm.horizon", "the cosine schedule needs the number of rounds; give it here");
    if (kind.is("cosine") && horizon < theory.rounds)
      warnings.push_back("the cosine step is 0 in the last " + std::to_string(theory.rounds - horizon) +
                         " of " + std::to_string(theory.rounds) + " " + std::string(steps) +
                         ", which have no effect: horizon = " + std::to_string(horizon) +
                         "; leave horizon out, so that the step falls until the end");
    if (!kind.is("constant") && step_from_theory)
      warnings.push_back("the theorem of the step size assumes a constant step; the schedule decreases it");
  }
  void check_monitor() const {
    if (!kind.is("constant")) refuse_monitor("the theorem is about constant step sizes");
  }
  double factor(std::uint32_t t) const {
    const double k = t;
    if (kind.is("inverse_sqrt")) return 1 / std::sqrt(k + 1);
    if (kind.is("inverse")) return 1 / (k + 1);
    if (kind.is("cosine")) return t >= horizon ? 0 : (1 + std::cos(std::numbers::pi * k / horizon)) / 2;
    return 1;
  }
};

}  // namespace gradwire
