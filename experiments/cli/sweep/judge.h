// The table of a sweep, made from its results: the best tuned values for each compared algorithm.
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
  std::size_t run = 0;  // index into SweepPlan::runs
  std::string outcome;  // as in summary.json, or "failed"
  std::vector<RoundRecord> records;
};

// Returns the worth of a run; less is better. Infinite if it diverged or missed the target within the budget.
double worth_of(const EndedRun& run, const Judgement& judgement);

// One of the compared algorithms, with its best tuned values.
struct BestOf {
  std::string compared;                  // "algorithm.name = ef21"; empty if nothing is compared
  std::string tuned;                     // "algorithm.step_size = theory*4"; empty if nothing was tuned
  std::vector<std::size_t> runs;         // indices into SweepPlan::runs: the seeds of the best values
  double median = 0, low = 0, high = 0;  // worths of `runs`
  std::vector<double> shown;             // medians of Judgement::show
  std::size_t tried = 0;                 // number of values, or of combinations of values
  double cost = 0;                       // cost of the best value until its run is within rounding of its end
  std::size_t equal = 1;                 // the number of these that end within rounding of the best
  std::size_t diverged = 0;              // runs of this algorithm that diverged, for all values
  std::string at_the_edge;               // tuned keys whose best value is the first or the last one tried
};

// Returns the best of each algorithm, in the order of the file. Only runs in `ended` count. Among values that
// end within rounding of the best, the best is the one that gets there at the least cost: in the column of
// the budget, else in bits_up.
std::vector<BestOf> best_of(const SweepPlan& plan, const std::vector<EndedRun>& ended);

// Returns a table for people. A line above it explains the numbers.
std::string table_text(const SweepPlan& plan, const std::vector<BestOf>& best);
// Return CSV for programs: one line for each algorithm, and one line for each run.
std::string best_csv(const SweepPlan& plan, const std::vector<BestOf>& best);
std::string runs_csv(const SweepPlan& plan, const std::vector<EndedRun>& ended);

}  // namespace gradwire
