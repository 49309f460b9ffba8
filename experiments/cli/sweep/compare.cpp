#include "experiments/cli/sweep/compare.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/config_error.h"
#include "base/value.h"
#include "experiments/cli/run/optimum.h"
#include "experiments/cli/support/fitting_algorithm.h"
#include "report/results_dir.h"
#include "simulation/optimum/f_star.h"

namespace gradwire {
namespace {

// Exponents of two: the first list of tuned steps, its growth, and the widest list.
constexpr int kFirstLow = -1, kFirstHigh = 4, kGrowth = 4, kLowest = -12, kHighest = 20;

// One of the algorithms, with the powers of two that its step size tries.
struct Competitor {
  AlgorithmSpec spec;
  std::string step_key;  // in [algorithm]; empty if theory gives no step size
  int low = 0, high = 0;

  std::string step(int exponent) const {
    return exponent == 0 ? "theory" : "theory*" + number_text(std::ldexp(1.0, exponent));
  }
};

std::vector<Competitor> competitors(const CompareRequest& request, const ExperimentSpec& own,
                                    const RunPlan& plan) {
  std::vector<Competitor> all;
  for (const std::string& name : request.algorithms) {
    const std::string option = "--algorithms " + name + ": ";
    const AlgorithmInfo* info = nullptr;
    try {
      info = &find_algorithm(name);
    } catch (const ConfigError& error) {
      throw UsageError(option + error.what());
    }
    if (std::any_of(all.begin(), all.end(), [&](const Competitor& c) { return c.spec.name == name; }))
      throw UsageError(option + "is named twice; name each algorithm once");
    const FittedAlgorithm step = fit_algorithm(*info, own, plan);
    if (!step.trouble.empty()) throw UsageError(option + step.trouble);
    Competitor c{step.spec, theory_step_key(*info)};
    if (request.tune && !c.step_key.empty()) c.low = kFirstLow, c.high = kFirstHigh;
    all.push_back(std::move(c));
    if (!request.sweep.log) continue;
    const std::string& compressor = step.spec.compressor;
    request.sweep.log(LogLine(name + ": compressor " + compressor + " (" +
                              why_compressor(info->traits, algorithm_spec(own).compressor, compressor) +
                              "), " + (step.by_theory ? "theory's step " : "default step ") +
                              rounded_text(step.step_size, 4)));
    if (request.tune && all.back().step_key.empty())
      request.sweep.log(LogLine::warning(name + ": theory gives no step size of " + name +
                                         ", so --tune has nothing to multiply"));
  }
  return all;
}

bool measures_accuracy(const ExperimentSpec& e) {
  const SampleSource* const source = sources_of(e.problem);
  return e.evaluation.accuracy && info_of(e.problem).has_classes && source != nullptr &&
         (!source->test.empty() || source->test_share > 0);
}

std::string literal(const std::string& text) { return toml_literal(value_of(text)); }

// Returns the [sweep] over the algorithms and seeds.
std::string sweep_section(const CompareRequest& request, const ExperimentSpec& e,
                          const std::vector<Competitor>& all) {
  const bool by_loss = measures_accuracy(e) || e.evaluation.grad_norm == GradNorm::kNone;
  std::string text = std::string("\n[sweep]\ncriterion = ") + (by_loss ? "\"loss\"\n" : "\"grad_norm_sq\"\n");
  if (!request.budget.empty()) text += "budget = " + toml_literal(request.budget) + "\n";
  text += std::string("show = [") + (measures_accuracy(e) ? "\"accuracy\", " : "") + "\"bytes_up\"]\n";
  if (by_loss && !measures_accuracy(e))
    text += "panels = [\"loss:bits\", \"loss:rounds\"]\n";
  else if (!by_loss)
    text += std::string("panels = [") +
            (is_convex(e) && has_minimum(e.problem) ? "\"gap:bits\"" : "\"grad_norm_sq:bits\"") +
            ", \"grad_norm_sq:rounds\"]\n";
  std::string tuned;
  for (const Competitor& c : all)
    if (const std::string key = "\"algorithm." + c.step_key + "\"";
        !c.step_key.empty() && tuned.find(key) == std::string::npos)
      tuned += (tuned.empty() ? "" : ", ") + key;
  text += "tune = [" + tuned + "]\nseed = [";
  for (std::uint32_t k = 0; k < request.seeds; ++k) text += (k == 0 ? "" : ", ") + std::to_string(e.seed + k);
  text += "]\n";
  for (const Competitor& c : all) {
    text += "\n[[sweep.grid]]\nalgorithm.name = " + toml_literal(c.spec.name) +
            "\nalgorithm.compressor = " + toml_literal(c.spec.compressor) + "\n";
    if (c.spec.batch > 0) text += "algorithm.batch = " + std::to_string(c.spec.batch) + "\n";
    if (c.spec.participation < 1)
      text += "clients.participation = " + number_text(c.spec.participation) + "\n";
    if (c.step_key != "step_size" && !c.spec.step_size.empty())
      text += "algorithm.step_size = " + literal(c.spec.step_size) + "\n";
    for (const auto& [key, value] : c.spec.parameters)
      if (key != c.step_key) text += "algorithm." + key + " = " + literal(value) + "\n";
    if (c.step_key.empty()) continue;
    text += "algorithm." + c.step_key + " = [";
    for (int k = c.low; k <= c.high; ++k) text += (k == c.low ? "" : ", ") + toml_literal(c.step(k));
    text += "]\n";
  }
  return text;
}

// Adds step sizes to a competitor if its best one is the first or the last, or if every run failed. Returns
// false if it adds none.
bool widen(Competitor& c, const SweepPlan& plan, const BestOf& best, const Log& log) {
  const std::string step = setting(plan.runs[best.runs.front()], "algorithm." + c.step_key);
  const bool has_failed = std::isinf(best.median);
  const int low = c.low, high = c.high;
  if (has_failed || step == c.step(c.low)) c.low = std::max(kLowest, c.low - kGrowth);
  if (!has_failed && step == c.step(c.high)) c.high = std::min(kHighest, c.high + kGrowth);
  if (c.low == low && c.high == high) return false;
  if (log)
    log(LogLine(c.spec.name + ": " +
                (has_failed ? "every step diverges" : "the best step, " + step + ", is at an end") +
                "; trying " +
                (c.low < low ? c.step(c.low) + " to " + c.step(low - 1)
                             : c.step(high + 1) + " to " + c.step(c.high))));
  return true;
}

bool widen_all(std::vector<Competitor>& all, const SweepPlan& plan, const SweepReport& report,
               const Log& log) {
  bool has_grown = false;
  for (const BestOf& best : report.best) {
    const std::string name = setting(plan.runs[best.runs.front()], "algorithm.name");
    for (Competitor& c : all)
      if (c.spec.name == name && !c.step_key.empty()) has_grown |= widen(c, plan, best, log);
  }
  return has_grown;
}

}  // namespace

SweepReport compare(const CompareRequest& request, const std::atomic<bool>& stop) {
  if (request.algorithms.empty())
    throw UsageError("--algorithms: name the algorithms to compare, as in --algorithms gd,diana,ef21");
  const LoadedExperiment loaded = load_experiment(request.file, request.sets);
  const RunPlan plan = plan_with_constants(loaded);
  for (const auto* warnings : {&loaded.warnings, &plan.warnings})
    for (const std::string& warning : *warnings)
      if (request.sweep.log) request.sweep.log(LogLine::warning(warning));
  std::vector<Competitor> all = competitors(request, loaded.experiment, plan);
  ExperimentSpec base = loaded.experiment;
  base.name += "-compare";
  base.run.monitor = false;
  make_paths_absolute(base, loaded.folder());
  AlgorithmSpec first;
  first.name = all.front().spec.name;
  first.step_size = all.front().spec.step_size;
  set_algorithm(base, first);
  for (;;) {
    const SweepPlan sweep =
        plan_sweep(to_toml(base) + sweep_section(request, base, all), base.name + ".toml", {});
    SweepReport report = run_sweep(sweep, request.sweep, stop);
    if (!request.tune || report.stopped || report.missing > 0 ||
        !widen_all(all, sweep, report, request.sweep.log))
      return report;
  }
}

}  // namespace gradwire
