#include "experiments/cli/sweep/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/value.h"
#include "experiments/cli/support/text_columns.h"
#include "report/columns.h"
#include "report/csv_field.h"

namespace gradwire {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Values of one run are equal within rounding if they differ by less than these shares of the value, and of
// the value at the start. Gradients and losses are sums, whose rounding errors are about 1e-16 of their
// terms.
constexpr double kRounding = 1e-12, kLossRounding = 1e-16, kNormRounding = 1e-24;
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

template <class T>
double as_number(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return value ? static_cast<double>(*value) : kNothing;  // an optional column
  }
}

double column_of(const RoundRecord& record, const std::string& name) {
  double found = kNothing;
  metric_columns(record, [&](std::string_view column, const auto& value, std::string_view) {
    if (column == name) found = as_number(value);
  });
  return found;
}

bool is_larger_better(const Judgement& judgement) { return judgement.criterion == "accuracy"; }

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Runs with the same algorithm and tuned values. They differ in the seed.
struct Trial {
  std::vector<std::size_t> runs;
  std::vector<double> worths;
  std::vector<double> ends;                // last values of the runs, used if no run reaches the target
  std::vector<std::vector<double>> shown;  // for each column of Judgement::show, one number per run
  std::vector<const EndedRun*> ended;
  double median() const { return median_of(worths); }
  bool is_better_than(const Trial& other) const {
    const double here = median(), there = other.median();
    return std::isinf(here) && std::isinf(there) ? median_of(ends) < median_of(other.ends) : here < there;
  }
};

// Returns the number to show for a worth. The worth of an accuracy has the opposite sign.
double shown(double worth, const Judgement& judgement) {
  return is_larger_better(judgement) && !judgement.target ? -worth : worth;
}

std::string number_of(double worth, const Judgement& judgement) {
  return std::isinf(worth) ? "never" : rounded_text(shown(worth, judgement), 4);
}

// Returns the distinct values of `key`, in the order of the runs.
std::vector<std::string> values_of(const SweepPlan& plan, const std::vector<std::size_t>& runs,
                                   const std::string& key) {
  std::vector<std::string> values;
  for (const std::size_t run : runs) {
    const std::string value = setting(plan.runs[run], key);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

// Returns the row by which a run is judged: the first one at the target, else the last one within the budget.
// Null if the run diverged or missed the target.
const RoundRecord* judged_row(const EndedRun& run, const Judgement& j) {
  if (run.outcome == "diverged") return nullptr;
  const RoundRecord* last = nullptr;
  for (const RoundRecord& record : run.records) {
    if (!j.budget_column.empty() && !(column_of(record, j.budget_column) <= j.budget)) continue;
    const double value = column_of(record, j.criterion);
    if (std::isnan(value)) continue;
    last = &record;
    if (j.target && (is_larger_better(j) ? value >= *j.target : value <= *j.target)) return last;
  }
  if (j.target || last == nullptr || !std::isfinite(column_of(*last, j.criterion))) return nullptr;
  return last;
}

double sign_of(const Judgement& j) { return is_larger_better(j) ? -1 : 1; }

// Returns the difference from `worth`, of a trial, that may be rounding.
double rounding_of(double worth, const Trial& trial, const Judgement& j) {
  const double share = j.criterion == "loss"           ? kLossRounding
                       : j.criterion == "grad_norm_sq" ? kNormRounding
                                                       : 0;
  const std::vector<RoundRecord>& records = trial.ended.front()->records;
  const double start = records.empty() || share == 0 ? 0 : std::abs(column_of(records.front(), j.criterion));
  return kRounding * std::abs(worth) + (std::isfinite(start) ? share * start : 0);
}

// Returns the median cost at which the runs first are within rounding of their ends. Seeds may have different
// ends, as each holds out other samples.
double cost_to_end(const Trial& trial, const Judgement& j) {
  const std::string column = j.budget_column.empty() ? "bits_up" : j.budget_column;
  std::vector<double> costs;
  for (std::size_t k = 0; k < trial.ended.size(); ++k) {
    const double end = trial.worths[k] + rounding_of(trial.worths[k], trial, j);
    double cost = kNever;
    for (const RoundRecord& record : trial.ended[k]->records)
      if (sign_of(j) * column_of(record, j.criterion) <= end) {
        cost = column_of(record, column);
        break;
      }
    costs.push_back(std::isnan(cost) ? kNever : cost);
  }
  return median_of(costs);
}

double shown_of(const EndedRun& run, const Judgement& j, const std::string& column) {
  const RoundRecord* const row = judged_row(run, j);
  return row == nullptr ? kNever : column_of(*row, column);
}

std::string what_is_judged(const Judgement& j) {
  const std::string budget =
      j.budget_column.empty() ? "" : " within " + j.budget_column + " <= " + number_text(j.budget);
  if (j.target)
    return j.budget_column + " until " + j.criterion + (is_larger_better(j) ? " >= " : " <= ") +
           number_text(*j.target) + budget;
  return j.criterion + (j.budget_column.empty() ? " at the end" : budget);
}

}  // namespace

double worth_of(const EndedRun& run, const Judgement& j) {
  const RoundRecord* const row = judged_row(run, j);
  if (row == nullptr) return kNever;
  if (j.target) return column_of(*row, j.budget_column);
  const double value = column_of(*row, j.criterion);
  return is_larger_better(j) ? -value : value;
}

std::vector<BestOf> best_of(const SweepPlan& plan, const std::vector<EndedRun>& ended) {
  const std::vector<std::string> compared = plan.compared();
  std::vector<std::string> tuned;
  for (const std::string& key : plan.tuned)
    if (std::find(plan.varied.begin(), plan.varied.end(), key) != plan.varied.end()) tuned.push_back(key);

  Judgement without_target = plan.judgement;
  without_target.target.reset();
  std::vector<std::string> algorithms;  // in order
  std::map<std::string, std::vector<Trial>> trials;
  std::map<std::string, std::map<std::string, std::size_t>> place;
  std::map<std::string, std::size_t> diverged;
  for (const EndedRun& run : ended) {
    const RunOfSweep& of = plan.runs[run.run];
    const std::string algorithm = label_of(of, compared), values = label_of(of, tuned);
    if (trials.find(algorithm) == trials.end()) algorithms.push_back(algorithm);
    std::vector<Trial>& list = trials[algorithm];
    const auto [at, is_new] = place[algorithm].emplace(values, list.size());
    if (is_new) list.emplace_back();
    Trial& trial = list[at->second];
    trial.runs.push_back(run.run);
    trial.ended.push_back(&run);
    trial.worths.push_back(worth_of(run, plan.judgement));
    trial.ends.push_back(worth_of(run, without_target));
    trial.shown.resize(plan.judgement.show.size());
    for (std::size_t k = 0; k < trial.shown.size(); ++k)
      trial.shown[k].push_back(shown_of(run, plan.judgement, plan.judgement.show[k]));
    diverged[algorithm] += run.outcome == "diverged";
  }

  std::vector<BestOf> best;
  for (const std::string& algorithm : algorithms) {
    const std::vector<Trial>& list = trials[algorithm];
    const Trial& least = *std::min_element(
        list.begin(), list.end(), [](const Trial& a, const Trial& b) { return a.is_better_than(b); });
    BestOf row;
    const Trial* chosen_trial = &least;
    if (const double worth = least.median(); !plan.judgement.target && !std::isinf(worth)) {
      const double reached = worth + rounding_of(worth, least, plan.judgement);
      double cheapest = kNever;
      row.equal = 0;
      for (const Trial& trial : list) {
        if (!(trial.median() <= reached)) continue;
        ++row.equal;
        if (const double cost = cost_to_end(trial, plan.judgement); cost < cheapest)
          cheapest = cost, chosen_trial = &trial;
      }
      row.cost = cheapest;
    }
    const Trial& first = *chosen_trial;
    row.compared = algorithm;
    row.tuned = label_of(plan.runs[first.runs[0]], tuned);
    row.runs = first.runs;
    row.median = first.median();
    row.low = *std::min_element(first.worths.begin(), first.worths.end());
    row.high = *std::max_element(first.worths.begin(), first.worths.end());
    for (const std::vector<double>& values : first.shown) row.shown.push_back(median_of(values));
    row.tried = list.size();
    row.diverged = diverged[algorithm];
    std::vector<std::size_t> all;
    for (const Trial& trial : list) all.insert(all.end(), trial.runs.begin(), trial.runs.end());
    std::sort(all.begin(), all.end());
    for (const std::string& key : tuned) {
      const std::vector<std::string> values = values_of(plan, all, key);
      const std::string chosen = setting(plan.runs[first.runs[0]], key);
      if (values.size() > 1 && !std::isinf(row.median) &&
          (chosen == values.front() || chosen == values.back()))
        row.at_the_edge += (row.at_the_edge.empty() ? "" : ", ") + key;
    }
    best.push_back(std::move(row));
  }
  return best;
}

std::string table_text(const SweepPlan& plan, const std::vector<BestOf>& best) {
  std::vector<std::vector<std::string>> rows = {
      {"compared", "best", "median", "lowest", "highest", "seeds", "tried", "diverged"}};
  rows[0].insert(rows[0].end(), plan.judgement.show.begin(), plan.judgement.show.end());
  for (const BestOf& row : best) {
    double low = row.low, high = row.high;
    if (shown(1, plan.judgement) < 0) std::swap(low, high);
    rows.push_back({row.compared.empty() ? plan.name : row.compared, row.tuned.empty() ? "-" : row.tuned,
                    number_of(row.median, plan.judgement), number_of(low, plan.judgement),
                    number_of(high, plan.judgement), std::to_string(row.runs.size()),
                    std::to_string(row.tried), std::to_string(row.diverged)});
    for (const double value : row.shown)
      rows.back().push_back(std::isinf(value) ? "never" : rounded_text(value, 4));
  }
  std::string text = what_is_judged(plan.judgement) + ":\n" + text_columns(rows, 2);
  std::string converged;
  double least = kNever;
  const std::string column = plan.judgement.budget_column.empty() ? "bits_up" : plan.judgement.budget_column;
  for (const BestOf& row : best) {
    if (row.equal < 2 || is_larger_better(plan.judgement)) continue;
    converged += (row.compared.empty() ? "" : row.compared + ": ") + std::to_string(row.equal) + " of " +
                 std::to_string(row.tried) +
                 " values end within rounding of the best, which gets there with " + column + " = " +
                 rounded_text(row.cost, 3) + "\n";
    least = std::min(least, row.cost);
  }
  if (!converged.empty())
    text += converged + "runs have converged, so their ends do not rank algorithms; a budget does, as in '" +
            column + " = " + rounded_text(least / 2, 2) + "', or sweep.target\n";
  std::set<std::string> said;
  for (const BestOf& row : best)
    if (!row.at_the_edge.empty() && said.insert(row.compared).second)
      text += (row.compared.empty() ? "" : row.compared + ": ") + "the best " + row.at_the_edge +
              " is the first or last one tried; a wider grid may have a better one\n";
  return text;
}

std::string best_csv(const SweepPlan& plan, const std::vector<BestOf>& best) {
  std::string text = "compared,best,median,lowest,highest,seeds,tried,diverged";
  for (const std::string& column : plan.judgement.show) text += "," + column;
  text += ",runs\n";
  for (const BestOf& row : best) {
    double low = shown(row.low, plan.judgement), high = shown(row.high, plan.judgement);
    if (low > high) std::swap(low, high);
    std::string ids;
    for (const std::size_t run : row.runs) ids += (ids.empty() ? "" : " ") + plan.runs[run].id;
    text += csv_field(row.compared) + "," + csv_field(row.tuned) + "," +
            number_text(shown(row.median, plan.judgement)) + "," + number_text(low) + "," +
            number_text(high) + "," + std::to_string(row.runs.size()) + "," + std::to_string(row.tried) +
            "," + std::to_string(row.diverged);
    for (const double value : row.shown) text += "," + number_text(value);
    text += "," + ids + "\n";
  }
  return text;
}

std::string runs_csv(const SweepPlan& plan, const std::vector<EndedRun>& ended) {
  std::string text = "run";
  for (const std::string& key : plan.varied) text += "," + csv_field(key);
  text += ",outcome,worth," + metrics_header() + "\n";
  const auto commas = std::count(metrics_header().begin(), metrics_header().end(), ',');
  const std::string empty(static_cast<std::size_t>(commas), ',');
  for (const EndedRun& run : ended) {
    const RunOfSweep& of = plan.runs[run.run];
    text += of.id;
    for (const std::string& key : plan.varied) text += "," + csv_field(setting(of, key));
    text += "," + run.outcome + "," + number_text(shown(worth_of(run, plan.judgement), plan.judgement)) +
            "," + (run.records.empty() ? empty : metrics_line(run.records.back())) + "\n";
  }
  return text;
}

}  // namespace gradwire
