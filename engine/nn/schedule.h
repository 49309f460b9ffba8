// The order of execution of a plan whose values do not keep their places for the whole pass. Either they are
// kept in bfloat16 (Network::keep_activations), or they are rematerialized within a budget
// (Network::limit_activations). A forward step that runs again reads the same numbers as before, so it gives
// the same bits.
#pragma once

#include <cstddef>

#include "engine/nn/plan.h"

namespace gradwire {

struct ScheduleOptions {
  KeptActivations kept = KeptActivations::kExact;
  ActivationBudget budget;
  std::size_t number_bytes = sizeof(float);
  // True to compute the gradients of all parameters once more after the backward pass, in forward order.
  bool up_again = false;
};

// Fills plan.actions, and decides where each value is at each action. Throws BudgetTooSmall.
void schedule(Plan& plan, const ScheduleOptions& options);

}  // namespace gradwire
