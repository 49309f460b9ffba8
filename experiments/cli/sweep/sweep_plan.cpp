#include "experiments/cli/sweep/sweep_plan.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "base/config_error.h"
#include "base/fnv1a.h"
#include "base/suggest.h"
#include "config/renamed_keys.h"
#include "experiments/cli/sweep/conditions.h"
#include "plotting/plot.h"
#include "report/columns.h"

namespace gradwire {
namespace {

constexpr const char* kGrids = "grid";

std::vector<std::string> column_names() {
  std::vector<std::string> names;
  const RoundRecord record;
  metric_columns(record,
                 [&](std::string_view name, const auto&, std::string_view) { names.emplace_back(name); });
  return names;
}

void check_column(const std::string& key, const std::string& column) {
  const std::vector<std::string> names = column_names();
  if (std::find(names.begin(), names.end(), column) == names.end())
    throw ConfigError(key, "metrics.csv has no column '" + column + "'" + suggest(column, names));
}

std::string text_in(const TomlChoice& choice, const char* what) {
  const std::string path = "sweep." + choice.path;
  if (choice.is_list || !std::holds_alternative<std::string>(choice.values[0])) throw ConfigError(path, what);
  return std::get<std::string>(choice.values[0]);
}

double number_in(const TomlChoice& choice) {
  const Value& value = choice.values.empty() ? Value{} : choice.values[0];
  if (const auto* number = std::get_if<double>(&value); number != nullptr && !choice.is_list) return *number;
  if (const auto* whole = std::get_if<std::int64_t>(&value); whole != nullptr && !choice.is_list)
    return static_cast<double>(*whole);
  throw ConfigError("sweep." + choice.path, choice.path + " must be a number");
}

// Reads a budget, as in "bits_up = 1e7".
void read_budget(const TomlChoice& choice, Judgement& to) {
  constexpr const char* kExpected = "budget must be COLUMN = NUMBER, as in \"bits_up = 1e7\"";
  std::string text = text_in(choice, kExpected);
  std::erase(text, ' ');
  const std::size_t equals = std::min(text.find('='), text.size());
  to.budget_column = text.substr(0, equals);
  const char* const first = text.data() + std::min(equals + 1, text.size());
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), to.budget);
  if (error != std::errc() || end != text.data() + text.size() || !(to.budget > 0))
    throw ConfigError("sweep.budget", kExpected);
  check_column("sweep.budget", to.budget_column);
}

std::vector<std::string> texts_in(const TomlChoice& choice, const char* what) {
  std::vector<std::string> texts;
  for (const Value& value : choice.values) {
    if (!std::holds_alternative<std::string>(value)) throw ConfigError("sweep." + choice.path, what);
    texts.push_back(std::get<std::string>(value));
  }
  return texts;
}

std::vector<std::string> panels_in(const TomlChoice& choice) {
  std::vector<std::string> panels = texts_in(choice, "panels must list panels, as in [\"gap:bits\"]");
  for (const std::string& panel : panels)
    if (const std::string trouble = trouble_of_panel(panel); !trouble.empty())
      throw ConfigError("sweep.panels", "panel '" + panel + "': " + trouble);
  return panels;
}

void add_warning(SweepPlan& plan, const std::string& warning) {
  if (std::find(plan.warnings.begin(), plan.warnings.end(), warning) == plan.warnings.end())
    plan.warnings.push_back(warning);
}

// Replaces old names in the keys and values of a table, with warnings. Throws if a key has both of its names.
void use_current_names_in(TomlChoices& choices, SweepPlan& plan) {
  const auto has = [&](const std::string& path) {
    return std::any_of(choices.begin(), choices.end(), [&](const TomlChoice& c) { return c.path == path; });
  };
  for (TomlChoice& choice : choices) {
    const std::string path = current_path(choice.path);
    if (path != choice.path && has(path))
      throw ConfigError("sweep." + path,
                        choice.path + " is the old name of " + path + "; remove one of the two");
    const std::string place = plan.file.string() + ":" + std::to_string(choice.line) + ": ";
    for (Value& value : choice.values) {
      std::string typed = choice.path;
      for (const std::string& warning : use_current_names(typed, value)) add_warning(plan, place + warning);
    }
    choice.path = path;
  }
}

// The keys of [sweep] itself.
struct SweepSettings {
  Judgement judgement;
  SweepFigure figure;
  std::optional<std::vector<std::string>> tune;
  std::vector<Condition> where;

  // Replaces old names in the texts of tune, by and where, with warnings.
  void use_current_names(SweepPlan& plan) {
    const auto take = [&](std::vector<std::string> more) {
      for (const std::string& warning : more) add_warning(plan, plan.file.string() + ": [sweep]: " + warning);
    };
    Value none;
    take(gradwire::use_current_names(figure.by, none));
    if (tune)
      for (std::string& key : *tune) take(gradwire::use_current_names(key, none));
    for (Condition& condition : where) take(condition.use_current_names());
  }

  // Reads a key of [sweep]. Returns false if it is a key of the experiment.
  bool take(const TomlChoice& choice) {
    if (choice.path == "criterion") {
      judgement.criterion = text_in(choice, "criterion must be the name of a column of metrics.csv");
      check_column("sweep.criterion", judgement.criterion);
    } else if (choice.path == "budget") {
      read_budget(choice, judgement);
    } else if (choice.path == "target") {
      judgement.target = number_in(choice);
    } else if (choice.path == "show") {
      judgement.show =
          texts_in(choice, "show must list columns of metrics.csv, as in [\"bytes_up\", \"grad_calls\"]");
      for (const std::string& column : judgement.show) check_column("sweep.show", column);
    } else if (choice.path == "tune") {
      tune = texts_in(choice, "tune must list keys, as in [\"algorithm.step_size\"]");
    } else if (choice.path == "panels") {
      figure.panels = panels_in(choice);
    } else if (choice.path == "by") {
      figure.by = text_in(choice, "by must be a key, as in \"problem.data\"");
    } else if (choice.path == "where") {
      for (const std::string& text : texts_in(choice, "where must be a condition or a list of them"))
        where.emplace_back(text);
    } else {
      return false;
    }
    return true;
  }
};

TomlEntry entry_of(const TomlChoice& choice, const Value& value) {
  TomlEntry entry;
  const std::size_t dot = choice.path.find('.');
  if (dot != std::string::npos) entry.section = choice.path.substr(0, dot);
  entry.key = dot == std::string::npos ? choice.path : choice.path.substr(dot + 1);
  entry.value = value;
  entry.line = choice.line;
  return entry;
}

// Returns all combinations; the last key varies fastest.
std::vector<std::vector<TomlEntry>> combinations(const TomlChoices& choices) {
  std::size_t count = 1;
  for (const TomlChoice& choice : choices) {
    const std::string path = "sweep." + choice.path;
    if (choice.values.empty()) throw ConfigError(path, choice.path + " is an empty list; list a value");
    count *= choice.values.size();
    if (count > kMostRuns)
      throw ConfigError(path,
                        "the grid has more than " + std::to_string(kMostRuns) + " runs; list fewer values");
  }
  std::vector<std::vector<TomlEntry>> all;
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<TomlEntry> run;
    std::size_t rest = k;
    for (auto choice = choices.rbegin(); choice != choices.rend(); ++choice) {
      run.push_back(entry_of(*choice, choice->values[rest % choice->values.size()]));
      rest /= choice->values.size();
    }
    std::reverse(run.begin(), run.end());
    all.push_back(std::move(run));
  }
  return all;
}

std::string id_of(const Settings& settings) {
  Fnv1a hash;
  for (const auto& [key, value] : settings) {
    hash.add(key + "\xff");  // a byte that does not occur in UTF-8
    hash.add(value + "\xff");
  }
  return hash.text();
}

std::vector<std::string> keys_that_differ(const std::vector<RunOfSweep>& runs) {
  std::vector<std::string> order;
  std::map<std::string, std::set<std::string>> values;
  for (const RunOfSweep& run : runs)
    for (const auto& [key, value] : run.settings) {
      if (values.find(key) == values.end()) order.push_back(key);
      values[key].insert(value);
    }
  std::vector<std::string> varied;
  for (const std::string& key : order) {
    const bool everywhere = std::all_of(runs.begin(), runs.end(), [&](const RunOfSweep& run) {
      return std::any_of(run.settings.begin(), run.settings.end(),
                         [&](const auto& s) { return s.first == key; });
    });
    if (values[key].size() > 1 || !everywhere) varied.push_back(key);
  }
  return varied;
}

void check_keys(const SweepSettings& rules, const std::vector<RunOfSweep>& runs) {
  std::set<std::string> known;
  for (const RunOfSweep& run : runs)
    for (const auto& [key, value] : run.settings) known.insert(key);
  const std::vector<std::string> all(known.begin(), known.end());
  const auto check = [&](const char* where, const std::string& key) {
    if (known.count(key) == 0)
      throw ConfigError(where, "no run has the key '" + key + "'" + suggest(key, all));
  };
  for (const Condition& condition : rules.where)
    for (const std::string& key : condition.keys()) check("sweep.where", key);
  for (const std::string& key : rules.tune.value_or(std::vector<std::string>{})) check("sweep.tune", key);
  if (!rules.figure.by.empty()) check("sweep.by", rules.figure.by);
}

// Returns the grids with the common lists first. A grid's own list of a key takes precedence, and --set takes
// precedence over both.
std::vector<TomlChoices> grids_of(const TomlSweep& sweep, const TomlChoices& common,
                                  std::span<const std::string> overrides) {
  const auto has = [](const TomlChoices& choices, const std::string& path) {
    return std::any_of(choices.begin(), choices.end(), [&](const TomlChoice& c) { return c.path == path; });
  };
  std::vector<TomlChoices> grids;
  for (const TomlChoices& own : sweep.tables.empty() ? std::vector<TomlChoices>{{}} : sweep.tables) {
    TomlChoices grid;
    for (const TomlChoice& choice : common)
      if (!has(own, choice.path)) grid.push_back(choice);
    grid.insert(grid.end(), own.begin(), own.end());
    std::erase_if(grid, [&](const TomlChoice& choice) {
      return std::any_of(overrides.begin(), overrides.end(),
                         [&](const std::string& text) { return key_of_override(text) == choice.path; });
    });
    grids.push_back(std::move(grid));
  }
  return grids;
}

// Throws an error about a key of [sweep], with the line of the key.
[[noreturn]] void fail(const SweepPlan& plan, const TomlSweep& sweep, const ConfigError& error) {
  std::uint32_t line = 1;
  for (const TomlChoice& choice : sweep.keys)
    if ("sweep." + choice.path == error.key()) line = choice.line;
  for (const TomlChoices& table : sweep.tables)
    for (const TomlChoice& choice : table)
      if ("sweep." + choice.path == error.key()) line = choice.line;
  throw ExperimentError(plan.file.string() + ":" + std::to_string(line) + ": " + error.what());
}

// Returns whether the swept values of a run suffice to see that `where` excludes it. An excluded run need not
// be valid.
bool is_left_out(const std::vector<TomlEntry>& chosen, const std::vector<Condition>& where) {
  Settings settings;
  for (const TomlEntry& entry : chosen)
    if (!std::holds_alternative<OtherValue>(entry.value) &&
        !std::holds_alternative<std::vector<std::int64_t>>(entry.value))
      settings.emplace_back(entry.section.empty() ? entry.key : entry.section + "." + entry.key,
                            text_of(entry.value));
  return std::any_of(where.begin(), where.end(),
                     [&](const Condition& condition) { return condition.is_broken_by(settings); });
}

void read_runs(SweepPlan& plan, const TomlSweep& sweep) {
  SweepSettings rules;
  TomlChoices common;
  for (const TomlChoice& choice : sweep.keys)
    if (!rules.take(choice)) common.push_back(choice);
  rules.use_current_names(plan);
  if (rules.judgement.target && rules.judgement.budget_column.empty())
    throw ConfigError("sweep.target",
                      "target needs budget, whose column measures the cost of reaching the target");
  std::set<std::string> seen;
  std::vector<RunOfSweep> all;  // also the runs that `where` excludes, because `where` may name their keys
  for (const TomlChoices& grid : grids_of(sweep, common, plan.overrides)) {
    for (std::vector<TomlEntry>& chosen : combinations(grid)) {
      if (is_left_out(chosen, rules.where)) continue;
      RunOfSweep run{std::move(chosen), {}, {}};
      const LoadedExperiment loaded = load_run(plan, run);
      for (const std::string& warning : loaded.warnings) add_warning(plan, warning);
      if (plan.name.empty()) plan.name = loaded.experiment.name;
      if (loaded.experiment.run.evaluate_every == 0)
        throw locate(
            loaded, ConfigError("run.evaluate_every",
                                "a sweep compares what evaluations measure; evaluate_every must be above 0"));
      if (rules.judgement.criterion == "grad_norm_sq" &&
          loaded.experiment.evaluation.grad_norm == GradNorm::kNone)
        throw locate(loaded, ConfigError("evaluation.grad_norm",
                                         "the sweep compares gradient norms; measure them, or choose another "
                                         "column as sweep.criterion"));
      run.settings = settings_of(loaded.experiment);
      run.id = id_of(settings_of(loaded.experiment, Names::kOld));  // the ids of earlier releases
      if (!seen.insert(run.id).second) continue;
      all.push_back(std::move(run));
      if (all.size() > kMostRuns)
        throw ConfigError("sweep", "the grids have more than " + std::to_string(kMostRuns) + " runs");
    }
  }
  if (!all.empty()) check_keys(rules, all);
  for (RunOfSweep& run : all)
    if (std::all_of(rules.where.begin(), rules.where.end(),
                    [&](const Condition& condition) { return condition.holds(run.settings); }))
      plan.runs.push_back(std::move(run));
  if (plan.runs.empty()) throw ConfigError("sweep.where", "where excludes all runs; loosen it");
  plan.varied = keys_that_differ(plan.runs);
  plan.tuned = rules.tune.value_or(std::vector<std::string>{"algorithm.step_size"});
  plan.judgement = rules.judgement;
  plan.figure = rules.figure;
}

}  // namespace

std::vector<std::string> SweepPlan::compared() const {
  std::vector<std::string> keys;
  for (const std::string& key : varied)
    if (key != "seed" && std::find(tuned.begin(), tuned.end(), key) == tuned.end()) keys.push_back(key);
  return keys;
}

SweepPlan read_sweep(const std::filesystem::path& file, std::span<const std::string> overrides) {
  return plan_sweep(read_experiment_text(file), file, overrides);
}

SweepPlan plan_sweep(std::string content, const std::filesystem::path& file,
                     std::span<const std::string> overrides) {
  SweepPlan plan;
  plan.file = file;
  plan.text = std::move(content);
  plan.overrides.assign(overrides.begin(), overrides.end());
  for (const std::string& text : overrides)
    if (const std::string key = key_of_override(text);
        (key + ".").starts_with(kSweepSection + std::string(".")))
      throw ExperimentError("--set " + key + ": sets keys of runs, not of [sweep]; change " + file.string());
  TomlSweep sweep;
  try {
    bool is_sweep = false;
    for (const TomlEntry& entry : read_toml(plan.text)) is_sweep |= entry.section == kSweepSection;
    if (!is_sweep)
      throw ExperimentError(
          file.string() +
          ": has no [sweep]; add one with the values to try, or start the single run with gradwire run");
    sweep = read_toml_sweep(plan.text, kSweepSection, kGrids);
  } catch (const TomlError& error) {
    throw ExperimentError(file.string() + ":" + std::to_string(error.line()) + ": " + error.what());
  }
  try {
    use_current_names_in(sweep.keys, plan);
    for (TomlChoices& table : sweep.tables) use_current_names_in(table, plan);
    read_runs(plan, sweep);
  } catch (const ConfigError& error) {
    fail(plan, sweep, error);
  }
  return plan;
}

LoadedExperiment load_run(const SweepPlan& plan, const RunOfSweep& run) {
  return parse_run_of_sweep(plan.text, plan.file, run.chosen, plan.overrides);
}

std::string setting(const RunOfSweep& run, std::string_view key) {
  for (const auto& [path, value] : run.settings)
    if (path == key) return value;
  return "";
}

std::string label_of(const RunOfSweep& run, std::span<const std::string> keys) {
  std::string label;
  for (const std::string& key : keys) {
    const std::string value = setting(run, key);
    if (!value.empty()) label += (label.empty() ? "" : ", ") + key + " = " + value;
  }
  return label;
}

}  // namespace gradwire
