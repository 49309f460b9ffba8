#include "experiments/cli/run/optimum.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <variant>

#include "base/config_error.h"
#include "base/value.h"
#include "engine/data/dataset.h"
#include "experiments/cli/support/fitting_algorithm.h"
#include "experiments/cli/support/text_columns.h"
#include "report/json.h"
#include "simulation/optimum/f_star.h"
#include "simulation/prepare.h"

namespace gradwire {
namespace {

constexpr int kDigits = 6;

double number_in(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Sets the numbers that theory gives step.spec. Throws ConfigError, DataError.
void resolve_step(FittedAlgorithm& step, const AlgorithmInfo& algorithm, const ExperimentSpec& own,
                  const RunPlan& plan) {
  ExperimentSpec e = own;
  e.run.monitor = false;
  set_algorithm(e, step.spec);
  check_experiment(e);
  std::vector<std::string> unused;
  const AlgorithmSpec resolved = resolve(step.spec, plan.theory(), unused);
  step.step_size = number_in(resolved.step_size);
  step.by_theory = has_theory_step(algorithm);
  for (const ParameterHelp& help : algorithm.parameters) {
    const auto of = [&](const Options& options) {
      const auto at =
          std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.first == help.name; });
      return at == options.end() ? std::string() : at->second;
    };
    const bool is_theory = help.fallback.empty() || help.fallback == "theory";
    const std::string given = of(step.spec.parameters), value = of(resolved.parameters);
    if (is_theory && (given.empty() || given == "theory") && !value.empty() && value != "none")
      step.others.emplace_back(help.name, value);
  }
}

void find_minimum(OptimumReport& report, const LoadedExperiment& loaded) {
  const ExperimentSpec& e = loaded.experiment;
  if (!is_convex(e)) {
    report.no_f_star = "f is not known to be convex";
    return;
  }
  if (!has_minimum(e.problem)) {
    report.no_f_star = "f falls without bound; give problem.lambda above 0";
    return;
  }
  if (const std::optional<Optimum> optimum = find_optimum(e, loaded.folder())) {
    report.f_star = optimum->f_star;
    report.grad_norm = optimum->grad_norm;
  } else if (std::holds_alternative<Quadratic>(e.problem)) {
    report.f_star = find_f_star(e, loaded.folder());
  }
  if (report.f_star)
    FStars(cache_folder()).keep(e, loaded.folder(), *report.f_star);
  else
    report.no_f_star = "no minimum was found; with regularizer = \"l2\" there is one";
}

std::string shown(const std::optional<double>& value, const std::string& otherwise) {
  return value ? rounded_text(*value, kDigits) : otherwise;
}

}  // namespace

std::optional<double> OptimumReport::condition() const {
  return smoothness.mu > 0 ? std::optional(smoothness.L / smoothness.mu) : std::nullopt;
}

RunPlan plan_with_constants(LoadedExperiment loaded) { return prepare(with_gd(std::move(loaded), "theory")); }

FittedAlgorithm fit_algorithm(const AlgorithmInfo& algorithm, const ExperimentSpec& own, const RunPlan& plan,
                              const std::optional<Options>& parameters) {
  FittedAlgorithm step;
  step.algorithm = algorithm.traits.name;
  try {
    const AlgorithmSpec spec = algorithm_spec(own);
    step.spec = fitting_spec(algorithm, spec, plan.d, plan.n());
    if (parameters) step.spec.parameters = *parameters;
    try {
      resolve_step(step, algorithm, own, plan);
    } catch (const ConfigError& error) {
      // The compressor of --set need not fit the algorithm of the file.
      if (error.key() == "algorithm.compressor" && step.spec.name == spec.name) {
        step.spec.compressor = fitting_compressor(algorithm.traits, spec.compressor, plan.d, plan.n());
        return resolve_step(step, algorithm, own, plan), step;
      }
      // Some theorems cover no compressor of an algorithm that takes one.
      if (error.key() != "algorithm.step_size" || step.spec.compressor == "identity") throw;
      step.spec.compressor = "identity";
      resolve_step(step, algorithm, own, plan);
    }
  } catch (const ConfigError& error) {
    step.trouble = error.key() + ": " + error.what();
  } catch (const DataError& error) {
    step.trouble = error.what();
  }
  return step;
}

OptimumReport report_optimum(const std::filesystem::path& file, const std::vector<std::string>& sets,
                             const Log& log) {
  const LoadedExperiment loaded = load_problem(file, sets);
  const RunPlan plan = plan_with_constants(loaded);
  for (const auto* warnings : {&loaded.warnings, &plan.warnings})
    for (const std::string& warning : *warnings)
      if (log) log(LogLine::warning(warning));
  OptimumReport report;
  report.problem = problem_type_name(loaded.experiment);
  report.n = plan.n();
  report.d = plan.d;
  report.smoothness = *plan.smoothness;
  find_minimum(report, loaded);
  for (const AlgorithmInfo& algorithm : all_algorithms())
    report.steps.push_back(fit_algorithm(algorithm, loaded.experiment, plan));
  return report;
}

std::string optimum_text(const OptimumReport& report) {
  const Smoothness& s = report.smoothness;
  const auto number = [](double value) { return rounded_text(value, kDigits); };
  const std::string unknown = "unknown";
  std::vector<std::vector<std::string>> facts = {
      {"problem", report.problem + ", n = " + std::to_string(report.n) + ", d = " + std::to_string(report.d)},
      {"f*", report.f_star ? number_text(*report.f_star) : unknown + ": " + report.no_f_star},
      {"||grad f(x*)||", shown(report.grad_norm, unknown)},
      {"L", number(s.L) + (s.estimated ? "  (an estimate, as are all constants here)" : "")},
      {"mu", s.mu > 0 ? number(s.mu) : "0 or unknown"},
      {"L / mu", shown(report.condition(), unknown)}};
  if (!s.L_i.empty())
    facts.push_back({"L_i", number(*std::min_element(s.L_i.begin(), s.L_i.end())) + " to " +
                                number(s.L_max()) + ", mean " + number(s.L_avg())});
  std::vector<std::vector<std::string>> rows = {
      {"algorithm", "compressor", "step_size", "", "also by theory"}};
  std::string misfits;
  for (const FittedAlgorithm& step : report.steps) {
    if (!step.trouble.empty()) {
      misfits += "  " + step.algorithm + ": " + step.trouble + "\n";
      continue;
    }
    std::string others;
    for (const auto& [key, value] : step.others)
      others += (others.empty() ? "" : ", ") + key + " = " + rounded_text(number_in(value), kDigits);
    rows.push_back({step.algorithm, step.spec.compressor, number(step.step_size),
                    step.by_theory ? "theory" : "default", others});
  }
  return text_columns(facts, 2) + "\n" + text_columns(rows, 5) +
         (misfits.empty() ? "" : "\nNot for this experiment:\n" + misfits);
}

std::string optimum_json(const OptimumReport& report) {
  const Smoothness& s = report.smoothness;
  const auto or_null = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  Json json = {{"problem", report.problem},
               {"clients", report.n},
               {"d", report.d},
               {"f_star", or_null(report.f_star)},
               {"grad_norm", or_null(report.grad_norm)},
               {"L", s.L},
               {"mu", s.mu},
               {"condition", or_null(report.condition())},
               {"L_i_min", s.L_i.empty() ? Json() : Json(*std::min_element(s.L_i.begin(), s.L_i.end()))},
               {"L_i_max", s.L_i.empty() ? Json() : Json(s.L_max())},
               {"L_avg", s.L_avg()},
               {"L_tilde", s.L_tilde()},
               {"estimated", s.estimated},
               {"algorithms", Json::array()}};
  if (!report.no_f_star.empty()) json["no_f_star"] = report.no_f_star;
  for (const FittedAlgorithm& step : report.steps) {
    Json row = {{"name", step.algorithm}, {"compressor", step.spec.compressor}};
    if (step.trouble.empty()) {
      row["step_size"] = step.step_size;
      row["by_theory"] = step.by_theory;
      for (const auto& [key, value] : step.others) row[key] = number_in(value);
    } else {
      row["trouble"] = step.trouble;
    }
    json["algorithms"].push_back(std::move(row));
  }
  return json_text(json);
}

}  // namespace gradwire
