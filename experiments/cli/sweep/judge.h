// From the results of a sweep to its table: the best values of what was tuned, for each of what is compared.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "experiments/cli/sweep/sweep_plan.h"
#include "rounds/round_loop.h"

namespace gradwire {

// A run that has ended.
struct EndedRun {
  std::size_t run = 0;  // of SweepPlan::runs
  std::string outcome;  // as summary.json spells it, or "failed"
  std::vector<RoundRecord> records;
};

// What a run is worth: less is better. Infinite: it diverged, or did not get there within the budget.
double worth_of(const EndedRun& run, const Judgement& judgement);

// One of the algorithms that are compared, with the tuned values that serve it best.
struct BestOf {
  std::string compared;                  // "algorithm.name = ef21"; empty: nothing is compared
  std::string tuned;                     // "algorithm.step_size = theory*4"; empty: nothing was tuned
  std::vector<std::size_t> runs;         // of SweepPlan::runs: the seeds of the best values
  double median = 0, low = 0, high = 0;  // of their worths
  std::vector<double> shown;             // medians of Judgement::show
  std::size_t tried = 0;                 // values, or combinations of them
  std::size_t diverged = 0;              // runs of this algorithm, whatever their values
  std::string at_the_edge;               // tuned keys whose best value is the first or the last one tried
};

// In the order of the file. Runs that are not among `ended` do not count.
std::vector<BestOf> best_of(const SweepPlan& plan, const std::vector<EndedRun>& ended);

// Columns for people; what the numbers are stands above them.
std::string table_text(const SweepPlan& plan, const std::vector<BestOf>& best);
// For programs: one line for each algorithm; one line for each run.
std::string best_csv(const SweepPlan& plan, const std::vector<BestOf>& best);
std::string runs_csv(const SweepPlan& plan, const std::vector<EndedRun>& ended);

}  // namespace gradwire
