#include "experiments/cli/sweep/compare.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <variant>

#include "base/config_error.h"
#include "base/text_lines.h"
#include "base/value.h"
#include "config/known_keys.h"
#include "config/toml_reader.h"
#include "experiments/cli/run/optimum.h"
#include "experiments/cli/support/fitting_algorithm.h"
#include "report/results_dir.h"
#include "simulation/optimum/f_star.h"

namespace gradwire {
namespace {

// Exponents of two: the first list of tuned steps, its growth, and the widest list.
constexpr int kFirstLow = -1, kFirstHigh = 4, kGrowth = 4, kLowest = -12, kHighest = 14;

// An algorithm as the user names it.
struct Named {
  std::string option;            // for errors
  std::string name, compressor;  // no compressor: one that fits
};

// Splits "gd, marina:randk:k=2,scaled=false" at its commas, except those of compressors.
std::vector<Named> named_algorithms(const std::vector<std::string>& options) {
  std::vector<std::string> parts;
  for (const std::string& option : options) {
    std::size_t start = 0;
    int depth = 0;
    parts.emplace_back();
    for (std::size_t at = 0; at <= option.size(); ++at) {
      if (at < option.size() && option[at] == '(') ++depth;
      if (at < option.size() && option[at] == ')') --depth;
      if (at < option.size() && (option[at] != ',' || depth > 0)) continue;
      const std::string part(trim(std::string_view(option).substr(start, at - start)));
      const std::size_t sign = part.find_first_of(":=(");
      const bool is_parameter = sign != part.npos && part[sign] == '=' && !parts.back().empty();
      if (is_parameter)
        parts.back() += "," + part;
      else if (!part.empty())
        parts.push_back(part);
      start = at + 1;
    }
  }
  std::vector<Named> all;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    const std::size_t colon = std::min(part.find(':'), part.size());
    all.push_back({"--algorithms " + part + ": ", part.substr(0, colon),
                   part.substr(std::min(colon + 1, part.size()))});
  }
  return all;
}

// A parameter of algorithms that --set gives. All compared algorithms with that parameter get it.
struct OwnParameter {
  std::string set, key, value;
};

// The parameters are no longer in `sets` afterwards.
std::vector<OwnParameter> take_parameters(std::vector<std::string>& sets) {
  std::vector<OwnParameter> own;
  std::erase_if(sets, [&](const std::string& set) {
    const std::string path = key_of_override(set), section = "algorithm.";
    const std::size_t equals = set.find('=');
    if (!path.starts_with(section) || equals == set.npos) return false;
    const std::string key = path.substr(section.size());
    if (key != "step_size" && find_key("algorithm", key) != nullptr) return false;
    const std::string spelled = set.substr(equals + 1);
    const auto value = read_toml_value(spelled);
    const std::string* const text = value ? std::get_if<std::string>(&*value) : nullptr;
    own.push_back({set, key, text != nullptr ? *text : spelled});
    return true;
  });
  return own;
}

// One of the algorithms, with the powers of two that its step size tries.
struct Competitor {
  AlgorithmSpec spec;
  std::string step_key;  // in [algorithm]; empty if theory gives no step size
  int low = 0, high = 0;
  bool is_at_bound = false;

  std::string step(int exponent) const {
    return exponent == 0 ? "theory" : "theory*" + number_text(std::ldexp(1.0, exponent));
  }
};

// Gives `spec` the parameters that its algorithm has, and marks them in `used`.
void set_parameters(AlgorithmSpec& spec, const AlgorithmInfo& info, const std::vector<OwnParameter>& own,
                    std::vector<bool>& used) {
  for (std::size_t k = 0; k < own.size(); ++k) {
    const std::string& key = own[k].key;
    if (std::none_of(info.parameters.begin(), info.parameters.end(),
                     [&](const ParameterHelp& help) { return help.name == key; }) &&
        key != "step_size")
      continue;
    used[k] = true;
    if (key == "step_size") {
      spec.step_size = own[k].value;
      continue;
    }
    std::erase_if(spec.parameters, [&](const auto& parameter) { return parameter.first == key; });
    spec.parameters.emplace_back(key, own[k].value);
  }
}

std::vector<Competitor> competitors(const CompareRequest& request, const std::vector<OwnParameter>& set,
                                    const ExperimentSpec& own, const RunPlan& plan) {
  std::vector<Competitor> all;
  std::vector<bool> used(set.size());
  std::string names;
  for (const Named& named : named_algorithms(request.algorithms)) {
    const std::string &name = named.name, &option = named.option;
    names += (names.empty() ? "" : ", ") + name;
    const AlgorithmInfo* info = nullptr;
    try {
      info = &find_algorithm(name);
    } catch (const ConfigError& error) {
      throw UsageError(option + error.what());
    }
    ExperimentSpec wished = own;
    if (!named.compressor.empty()) wished.algorithm.compressor = named.compressor;
    AlgorithmSpec with = algorithm_spec(wished);
    if (with.name != name) with.parameters.clear();
    set_parameters(with, *info, set, used);
    const FittedAlgorithm step = fit_algorithm(*info, wished, plan, with.parameters);
    if (!step.trouble.empty()) throw UsageError(option + step.trouble);
    if (!named.compressor.empty() && step.spec.compressor != named.compressor)
      throw UsageError(option + "does not fit: " + name + " would take " + step.spec.compressor + " (" +
                       why_compressor(info->traits, named.compressor, step.spec.compressor) + ")");
    if (std::any_of(all.begin(), all.end(), [&](const Competitor& c) {
          return c.spec.name == name && c.spec.compressor == step.spec.compressor;
        }))
      throw UsageError(option +
                       "is named twice; name each algorithm once, or with different compressors, as in " +
                       "ef21:topk:k=3,ef21:topk:k=30");
    Competitor c{step.spec, theory_step_key(*info)};
    for (const OwnParameter& parameter : set)
      if (parameter.key == "step_size" || parameter.key == c.step_key) {
        if (request.tune)
          throw UsageError("--set " + parameter.set +
                           ": --tune searches the step size; leave one of them out");
        if (parameter.key == c.step_key) c.step_key.clear();
        if (parameter.key == "step_size") c.spec.step_size = parameter.value;
      }
    if (request.tune && !c.step_key.empty()) c.low = kFirstLow, c.high = kFirstHigh;
    all.push_back(std::move(c));
    if (!request.sweep.log) continue;
    const std::string& compressor = step.spec.compressor;
    request.sweep.log(LogLine(
        name + ": compressor " + compressor + " (" +
        (named.compressor.empty() ? why_compressor(info->traits, own.algorithm.compressor, compressor)
                                  : "as --algorithms says") +
        "), " + (step.by_theory ? "theory's step " : "default step ") + rounded_text(step.step_size, 4)));
    if (request.tune && all.back().step_key.empty())
      request.sweep.log(LogLine::warning(name + ": theory gives no step size of " + name +
                                         ", so --tune has nothing to multiply"));
  }
  for (std::size_t k = 0; k < set.size(); ++k)
    if (!used[k])
      throw UsageError("--set " + set[k].set + ": no compared algorithm has the parameter " + set[k].key +
                       " (" + names + ")");
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
  // The first panel is the reason to compress: what is left to gain, against bits.
  const std::string left = is_convex(e) && has_minimum(e.problem) ? "gap" : by_loss ? "loss" : "grad_norm_sq";
  std::vector<std::string> panels = request.sweep.panels;
  if (panels.empty())
    panels = {left + ":bits", measures_accuracy(e) ? "accuracy:bits"
                              : by_loss            ? "loss:rounds"
                                                   : "grad_norm_sq:rounds"};
  text += "panels = [";
  for (std::size_t k = 0; k < panels.size(); ++k) text += (k == 0 ? "" : ", ") + toml_literal(panels[k]);
  text += "]\n";
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
  if (!has_failed && step == c.step(kHighest) && !std::exchange(c.is_at_bound, true) && log)
    log(LogLine::warning(
        c.spec.name + ": the best step is the largest one tried, " + step +
        "; if f has no minimum, as on separable data without problem.lambda, larger steps are "
        "always better: give lambda above 0, or --budget"));
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
    const RunOfSweep& run = plan.runs[best.runs.front()];
    for (Competitor& c : all)
      if (c.spec.name == setting(run, "algorithm.name") &&
          c.spec.compressor == setting(run, "algorithm.compressor") && !c.step_key.empty())
        has_grown |= widen(c, plan, best, log);
  }
  return has_grown;
}

// Returns a text that is equal for runs with equal settings, except the name and the keys in `aside`.
std::string settings_text(const RunOfSweep& run, const std::vector<std::string>& aside) {
  std::string text;
  for (const auto& [key, value] : run.settings)
    if (key != "name" && std::find(aside.begin(), aside.end(), key) == aside.end())
      text += key + "=" + value + "\n";
  return text;
}

// Returns what an earlier sweep has and `now` does not, as in "run.rounds = 100". Empty if `now` repeats it
// or adds to it.
std::string lost_setting(const SweepPlan& earlier, const SweepPlan& now, bool tunes) {
  std::vector<std::string> aside;  // tuned steps; the search extends them
  if (tunes) aside = now.tuned;
  std::set<std::string> all;
  std::set<std::pair<std::string, std::string>> settings;
  for (const RunOfSweep& run : now.runs) {
    all.insert(settings_text(run, aside));
    settings.insert(run.settings.begin(), run.settings.end());
  }
  for (const RunOfSweep& run : earlier.runs) {
    if (all.contains(settings_text(run, aside))) continue;
    for (const auto& [key, value] : run.settings)
      if (key != "name" && std::find(aside.begin(), aside.end(), key) == aside.end() &&
          !settings.contains({key, value}))
        return key + " = " + value;
    return label_of(run, earlier.varied);
  }
  return "";
}

// Throws UsageError if the folder has a comparison that `now` does not include.
void check_earlier(const std::filesystem::path& folder, const SweepPlan& now, bool tunes) {
  const std::filesystem::path file = folder / "sweep.toml";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return;
  std::string lost;
  try {
    lost = lost_setting(read_sweep(file, {}), now, tunes);
  } catch (const ExperimentError& error) {
    lost = error.what();
  }
  if (!lost.empty())
    throw UsageError(folder.string() + ": has a comparison of other settings: " + lost +
                     "; choose another folder with --out, replace it with --overwrite, or move it aside with "
                     "--fresh");
}

// Throws ExperimentError that names the user's experiment: sweep.toml does not exist yet.
SweepPlan plan_of(const CompareRequest& request, const ExperimentSpec& base,
                  const std::vector<Competitor>& all, const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "sweep.toml";
  try {
    return plan_sweep(to_toml(base) + sweep_section(request, base, all), file, {});
  } catch (const ExperimentError& error) {
    std::string what = error.what();
    if (what.starts_with(file.string() + ":"))
      what = what.substr(std::min(what.find(": ", file.string().size()), what.size() - 2) + 2);
    throw ExperimentError(request.file.string() + ": " + what);
  }
}

}  // namespace

SweepReport compare(const CompareRequest& request, const std::atomic<bool>& stop) {
  if (named_algorithms(request.algorithms).empty())
    throw UsageError("--algorithms: name the algorithms to compare, as in --algorithms gd,diana,ef21");
  std::vector<std::string> sets = request.sets;
  const std::vector<OwnParameter> parameters = take_parameters(sets);
  const LoadedExperiment loaded = load_problem(request.file, sets);
  const RunPlan plan = plan_with_constants(loaded);
  for (const auto* warnings : {&loaded.warnings, &plan.warnings})
    for (const std::string& warning : *warnings)
      if (request.sweep.log) request.sweep.log(LogLine::warning(warning));
  std::vector<Competitor> all = competitors(request, parameters, loaded.experiment, plan);
  ExperimentSpec base = loaded.experiment;
  base.name += "-compare";
  base.run.monitor = false;
  make_paths_absolute(base, loaded.folder());
  AlgorithmSpec first;
  first.name = all.front().spec.name;
  first.step_size = all.front().spec.step_size;
  set_algorithm(base, first);
  SweepRequest sweeping = request.sweep;
  if (sweeping.out.empty()) sweeping.out = std::filesystem::path("results") / base.name;
  for (bool is_first = true;; is_first = false) {
    const SweepPlan sweep = plan_of(request, base, all, sweeping.out);
    if (is_first && !sweeping.fresh && !request.overwrite) check_earlier(sweeping.out, sweep, request.tune);
    SweepReport report = run_sweep(sweep, sweeping, stop);
    sweeping.fresh = false;
    if (!request.tune || report.stopped || report.missing > 0 ||
        !widen_all(all, sweep, report, request.sweep.log))
      return report;
  }
}

}  // namespace gradwire
