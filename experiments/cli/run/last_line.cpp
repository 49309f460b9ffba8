#include "experiments/cli/run/last_line.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "algorithms/algorithms.h"
#include "base/value.h"
#include "gradwire/bad_input.h"
#include "simulation/optimum/f_star.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr int kShownDigits = 4;

std::string rounded(const std::string& number) {
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  return error == std::errc() && end == number.data() + number.size() ? rounded_text(value, kShownDigits)
                                                                      : number;
}

std::string value_in(const Options& options, const std::string& key) {
  const auto at = std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.first == key; });
  return at == options.end() ? "" : at->second;
}

// Returns "step_size = 0.25 (theory*2)" for each step size of the algorithm.
std::string step_sizes(const RunPlan& plan) {
  const AlgorithmSpec asked = algorithm_spec(plan.asked), used = algorithm_spec(plan.experiment);
  std::string text;
  for (const ParameterHelp& help : find_algorithm(used.name).parameters) {
    const bool is_main = help.name == "step_size";
    if (!is_main && !help.name.ends_with("_step_size")) continue;
    const std::string given = is_main ? asked.step_size : value_in(asked.parameters, help.name);
    const std::string& chosen = given.empty() ? help.fallback : given;
    const std::string why = chosen.starts_with("theory") ? chosen : given.empty() ? "default" : "given";
    text += ", " + help.name + " = " +
            rounded(is_main ? used.step_size : value_in(used.parameters, help.name)) + " (" + why + ")";
  }
  return text;
}

// Returns f - f* at the last evaluation. Nullopt if f* is not known, or if the loss is that of some clients.
std::optional<double> gap(const RunPlan& plan, const RunResult& result) {
  if (plan.experiment.evaluation.clients < 1 || plan.experiment.run.evaluate_every == 0) return std::nullopt;
  try {
    const std::optional<double> f_star = FStars(cache_folder()).known(plan.experiment, {});
    return f_star ? std::optional(std::max(0.0, result.last.loss - *f_star)) : std::nullopt;
  } catch (const BadInput&) {  // the data have gone since the run read them
    return std::nullopt;
  }
}

}  // namespace

std::string last_line(const RunPlan& plan, const RunResult& result, const fs::path& folder) {
  std::string line = "results: " + folder.string();
  std::error_code ignored;
  const fs::path figure = folder / "plot.svg";
  if (plan.experiment.run.evaluate_every > 0 && fs::exists(figure, ignored))
    line += ", figure: " + figure.string();
  if (const std::optional<double> left = gap(plan, result))
    line += ", f - f* = " + rounded_text(*left, kShownDigits);
  line += step_sizes(plan);
  if (result.last.sim_seconds)
    line += ", " + rounded_text(*result.last.sim_seconds, kShownDigits) + " simulated seconds";
  return line;
}

}  // namespace gradwire
