#include "report/summary.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "algorithms/algorithms.h"
#include "base/value.h"
#include "config/experiment_spec.h"
#include "gradwire/version.h"
#include "report/build_info.h"
#include "report/json.h"

namespace gradwire {
namespace {

constexpr std::size_t kMaxListed = 10'000;  // largest number of clients whose L_i are written

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

// Returns a JSON number if the text is a number, else a string.
Json parameter_json(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? Json(number) : Json(text);
}

Json algorithm_json(const AlgorithmSpec& spec) {
  Json json = {{"name", spec.name},
               {"compressor", spec.compressor},
               {"step_size", parameter_json(spec.step_size)},
               {"batch", spec.batch == 0 ? Json("full") : Json(spec.batch)},
               {"participation", spec.participation}};
  for (const auto& [key, value] : spec.parameters) json[key] = parameter_json(value);
  return json;
}

// Returns the keys of [algorithm] whose resolved value differs from the user's, with the user's value as
// TOML.
Json asked_json(const ExperimentSpec* asked, const ExperimentSpec& resolved) {
  Json json = Json::object();
  if (asked == nullptr) return json;
  const AlgorithmSpec before = algorithm_spec(*asked), after = algorithm_spec(resolved);
  const auto add = [&](const std::string& key, const std::string& was, const std::string& is) {
    if (was != is) json["algorithm." + key] = was.empty() ? "default" : toml_literal(value_of(was));
  };
  add("compressor", before.compressor, after.compressor);
  add("step_size", before.step_size, after.step_size);
  for (const auto& [key, value] : after.parameters) {
    std::string was;
    for (const auto& [other, text] : before.parameters)
      if (other == key) was = text;
    add(key, was, value);
  }
  return json;
}

Json constants_json(const Theory& theory) {
  Json json = {{"omega", theory.compressor.omega},
               {"alpha", theory.compressor.alpha},
               {"zeta", theory.compressor.zeta}};
  if (theory.smoothness == nullptr) return json;
  const Smoothness& s = *theory.smoothness;
  json["L"] = s.L;
  json["L_tilde"] = s.L_tilde();
  json["L_avg"] = s.L_avg();
  json["L_max"] = s.L_max();
  json["mu"] = s.mu;
  json["L_exact"] = s.exact;
  json["L_estimated"] = s.estimated;
  if (s.L_plus) json["L_plus"] = *s.L_plus;
  if (s.L_pm) json["L_pm"] = *s.L_pm;
  json["L_s"] = s.L_s;
  json["L_sample_max"] = s.L_sample_max;
  if (s.L_i.size() <= kMaxListed) json["L_i"] = s.L_i;
  return json;
}

Json processes_json(const Summary& s) {
  Json json = Json::array();
  for (const ProcessInfo& p : s.processes)
    json.push_back({{"role", p.role}, {"pid", p.pid}, {"executable", p.executable}});
  return json;
}

Json energy_json(const EnergyUse& use, std::uint32_t rounds) {
  const auto or_null = [](const std::optional<double>& joules) { return joules ? Json(*joules) : Json(); };
  const Energy& used = use.energy;
  Json json = {{"package_joules", or_null(used.package)},
               {"core_joules", or_null(used.core)},
               {"memory_joules", or_null(used.memory)},
               {"board_joules", or_null(used.board)}};
  if (used.board) json["board_sensor"] = used.board_sensor;
  if (used.package && rounds > 0) json["package_joules_per_round"] = *used.package / rounds;
  if (used.board && rounds > 0) json["board_joules_per_round"] = *used.board / rounds;
  if (!use.trouble.empty()) json["trouble"] = use.trouble;
  return json;
}

Json schema_json(const DataSchema& schema) {
  Json letters = Json::array();
  for (const char letter : schema.alphabet) letters.push_back(static_cast<unsigned char>(letter));
  Json json = {{"features", schema.columns}, {"labels", schema.labels}, {"letters", letters}};
  if (!schema.feature_names.empty()) json["names"] = schema.feature_names;
  return json;
}

// Returns the end of "try a smaller ...": theory's step too, if nobody asked for the constants that it needs,
// as a server does not if the step is a number.
std::string or_theory(const ExperimentSpec& resolved, const Theory& theory) {
  if (theory.smoothness != nullptr || !info_of(resolved.problem).has_smoothness) return "";
  AlgorithmSpec spec = algorithm_spec(resolved);
  spec.step_size = "theory";
  if (needed_constants(spec).smoothness.empty()) return "";
  return "; or write step_size = \"theory\", and the constants of the clients give it";
}

}  // namespace

std::string step_above_theory(const ExperimentSpec& resolved, const Theory& theory) {
  constexpr double kRounding = 1e-9;
  if (theory.smoothness == nullptr) return "";
  for (const TheoryStep& step : theory_steps(algorithm_spec(resolved), theory))
    if (step.value > step.theory * (1 + kRounding))
      return "algorithm." + step.key + " = " + rounded_text(step.value, 6) + " is above theory's " +
             rounded_text(step.theory, 6) + "; write " + step.key + " = \"theory\"";
  return "";
}

std::string loss_rise(std::optional<double> at_start, const std::optional<RoundRecord>& last,
                      const ExperimentSpec& resolved, const Theory& theory) {
  constexpr double kRounding = 1e-9;
  const double at_end = last ? last->loss : std::nan("");
  if (!at_start || !std::isfinite(at_end) || !(at_end - *at_start > kRounding * std::abs(*at_start)))
    return "";
  std::string end = rounded_text(at_end, 6), start = rounded_text(*at_start, 6);
  if (end == start) {
    end = number_text(at_end);
    start = number_text(*at_start);
  }
  const std::string above = step_above_theory(resolved, theory);
  return "the run ends with a loss of " + end + ", above the " + start + " at its start; " +
         (above.empty() ? "try a smaller algorithm.step_size, or other parameters in [algorithm]" +
                              or_theory(resolved, theory)
                        : above);
}

std::string divergence(const ExperimentSpec& resolved, const Theory& theory) {
  const double norm_limit = resolved.server.norm_limit;
  const std::string above = step_above_theory(resolved, theory);
  return std::string("a loss or a gradient is not finite") +
         (norm_limit > 0 ? ", or a reply is beyond server.norm_limit; " : "; ") +
         (above.empty()
              ? "try a smaller step (this was algorithm.step_size = " + resolved.algorithm.step_size + ")"
              : above) +
         (norm_limit > 0 ? " or a larger server.norm_limit (this was " + number_text(norm_limit) + ")" : "") +
         (above.empty() ? or_theory(resolved, theory) : "");
}

std::string evaluation_share(double evaluation_seconds, double seconds) {
  if (!(evaluation_seconds > 0) || !(seconds > 0)) return "";
  std::array<char, 96> text;
  std::snprintf(text.data(), text.size(), "evaluations took %.3g %% of %.3g s",
                100 * evaluation_seconds / seconds, seconds);
  return text.data();
}

std::string end_reason(const ExperimentSpec& experiment, Outcome outcome,
                       const std::optional<RoundRecord>& last) {
  const RunSection& run = experiment.run;
  if (outcome == Outcome::kStalled)
    return "the loss has had no new minimum in " + std::to_string(run.patience) +
           " evaluations (run.patience)";
  if (outcome != Outcome::kReachedTarget || !last) return "";
  if (run.stop_at_loss.value && last->loss <= *run.stop_at_loss.value)
    return "the loss " + rounded_text(last->loss, 6) +
           " is not above run.stop_at_loss = " + number_text(*run.stop_at_loss.value);
  if (run.stop_at_accuracy > 0 && last->accuracy && *last->accuracy >= run.stop_at_accuracy)
    return "the accuracy " + rounded_text(*last->accuracy, 6) +
           " is not below run.stop_at_accuracy = " + number_text(run.stop_at_accuracy);
  if (run.stop_at_grad_norm_sq > 0 && last->grad_norm_sq && *last->grad_norm_sq <= run.stop_at_grad_norm_sq)
    return "the squared gradient norm " + rounded_text(*last->grad_norm_sq, 6) +
           " is not above run.stop_at_grad_norm_sq = " + number_text(run.stop_at_grad_norm_sq);
  return "the program that started the run asked for it";
}

std::string outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFinished: return "finished";
    case Outcome::kReachedTarget: return "reached_target";
    case Outcome::kStopped: return "stopped";
    case Outcome::kDiverged: return "diverged";
    case Outcome::kStalled: return "stalled";
  }
  return "";
}

std::optional<DataSchema> schema_in_summary(const std::filesystem::path& folder, std::string_view kind) {
  constexpr std::size_t kLargest = 16u << 20;
  std::ifstream in(folder / "summary.json", std::ios::binary);
  std::string text(kLargest, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  try {
    const Json json = Json::parse(text);
    if (json.at("problem").get<std::string>() != kind) return std::nullopt;
    const Json& of = json.at("trained_on");
    DataSchema schema{.columns = of.at("features").get<std::size_t>(),
                      .labels = of.at("labels").get<std::vector<double>>()};
    for (const int byte : of.at("letters").get<std::vector<int>>())
      schema.alphabet += static_cast<char>(byte);
    if (of.contains("names")) schema.feature_names = of.at("names").get<std::vector<std::string>>();
    const auto is_damaged = [](const std::string& name) { return name.find("\xef\xbf\xbd") != name.npos; };
    if (std::ranges::any_of(schema.feature_names, is_damaged)) schema.feature_names.clear();  // was not UTF-8
    return schema;
  } catch (const Json::exception&) {  // from an older version, or edited
    return std::nullopt;
  }
}

std::string summary_json(const Summary& s) {
  const ExperimentSpec& e = *s.experiment;
  const SampleSource* const source = sources_of(e.problem);
  std::vector<std::string> warnings = s.warnings;
  if (std::string rise = loss_rise(s.loss_at_start, s.last, *s.experiment, s.theory); !rise.empty())
    warnings.push_back(std::move(rise));
  Json json = {{"name", e.name},
               {"version", version()},
               {"build", build_info()},
               {"kernels", s.kernels},
               {"host", host_name()},
               {"seed", e.seed},
               {"precision", words_of(e.precision)[static_cast<int>(e.precision)]},
               {"problem", problem_type_name(e)},
               {"data", source == nullptr ? "" : source->data},
               {"clients", s.theory.n},
               {"d", s.theory.d},
               {"transport", s.transport},
               {"threads", s.threads},
               {"algorithm", algorithm_json(algorithm_spec(e))},
               {"asked", asked_json(s.asked, e)},
               {"constants", constants_json(s.theory)},
               {"warnings", warnings},
               {"outcome", outcome_name(s.outcome)},
               {"reason", end_reason(e, s.outcome, s.last)},
               {"rounds", s.rounds},
               {"loss_at_start", s.loss_at_start ? Json(*s.loss_at_start) : Json()},
               {"last", s.last ? Json(*s.last) : Json()},
               {"seconds", s.seconds},
               {"evaluation_seconds", s.evaluation_seconds},
               {"processes", processes_json(s)}};
  if (s.schema != nullptr) json["trained_on"] = schema_json(*s.schema);
  if (s.energy) json["energy"] = energy_json(*s.energy, s.rounds);
  return json_text(json);
}

}  // namespace gradwire
