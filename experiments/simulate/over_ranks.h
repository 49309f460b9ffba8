// A simulation that ranks share: what they do together, and what is refused.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/ranks.h"
#include "experiments/simulate/checkpoint.h"
#include "experiments/simulate/prepare.h"

namespace gradwire {

// Thrown where another rank fails, and says why.
struct FailedElsewhere {};

// Thrown where one rank has left the others in the middle of what all do: nothing but the end of the job
// helps.
struct LostStep {
  std::string what;
};

// Collective. Runs `work`; where it throws on a rank, the first such rank throws the same and all others
// FailedElsewhere. `ranks`: null: this is the only process.
void all_or_none(Ranks* ranks, const std::function<void()>& work);

// Throws UsageError, one line, when ranks cannot share this run.
void check_for_ranks(const Prepared& prepared);

// Collective. Throws UsageError on the first rank whose text is not that of rank 0, FailedElsewhere on all
// others.
void check_same_run(Ranks& ranks, const std::string& text);

// Collective; `mine` of rank 0 counts.
Checkpoint::Saved share_saved(Ranks& ranks, const Checkpoint::Saved& mine);
// Collective. At rank 0: the texts of all ranks, one after the other; elsewhere empty.
std::string join_at_first(Ranks& ranks, std::string_view mine);

}  // namespace gradwire
