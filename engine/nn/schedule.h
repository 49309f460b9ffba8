// The order in which a plan is run where values have no place for the whole pass: because they are kept in
// bfloat16 (Network::keep_activations), or computed again within a budget (Network::limit_activations). Every
// forward step that is run again reads the same numbers as before and so gives the same bits.
#pragma once

#include <cstddef>

#include "engine/nn/plan.h"

namespace gradwire {

struct ScheduleOptions {
  KeptActivations kept = KeptActivations::kExact;
  ActivationBudget budget;
  std::size_t number_bytes = sizeof(float);
  bool up_again =
      false;  // behind the backward pass the gradients of all parameters once more, from the data up
};

// Fills plan.actions, and gives values their places in turn. Throws BudgetTooSmall.
void schedule(Plan& plan, const ScheduleOptions& options);

}  // namespace gradwire
