#include "config/experiment_spec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "algorithms/algorithms.h"

namespace gradwire {
namespace {

const std::vector<std::string_view>& problem_type_words() {
  static const std::vector<std::string_view> words = [] {
    std::vector<std::string_view> names;
    for (const ProblemInfo& kind : problem_types()) names.push_back(kind.name);
    return names;
  }();
  return words;
}

// Sets Constraints::idle_by of keys that have no effect because of a key of another section.
void see_other_sections(const ExperimentSpec& e, std::vector<KeySection>& sections) {
  struct Idle {
    std::string_view section, key, by;
    bool is_idle;
  };
  const bool has_samples = sources_of(e.problem) != nullptr, is_evaluated = e.run.evaluate_every > 0;
  const bool has_replicas = e.algorithm.name.empty() ||  // not known yet
                            has(find_algorithm(e.algorithm.name).traits.client_state, ClientState::kMirrored);
  const std::array<Idle, 8> all = {{
      {"problem", "noise", "algorithm.batch", !has_samples && e.algorithm.batch == 0},
      {"clients", "partition", "problem.kind", !has_samples},
      {"clients", "weights", "problem.kind", !has_samples},
      {"run", "kernels", "problem.kind", info_of(e.problem).brings_functions},
      {"evaluation", "grad_norm", "run.evaluate_every", !is_evaluated},
      {"evaluation", "accuracy", "run.evaluate_every", !is_evaluated},
      {"evaluation", "clients", "run.evaluate_every", !is_evaluated},
      {"server", "client_state_replicas", "algorithm.name", !has_replicas},
  }};
  for (KeySection& section : sections)
    for (Field& field : section.fields)
      for (const Idle& idle : all)
        if (idle.is_idle && idle.section == section.name && idle.key == field.key)
          field.constraints.idle_by = idle.by;
}

}  // namespace

std::string KeySection::path(std::string_view key) const {
  return (name.empty() ? "" : std::string(name) + ".") + std::string(key);
}

std::vector<KeySection> sections_of(ExperimentSpec& e) {
  std::vector<KeySection> sections;
  sections.push_back({"", fields_of(e)});
  sections.push_back({"problem", problem_fields(e.problem)});
  sections.push_back({"clients", fields_of(e.clients)});
  sections.push_back({"algorithm", fields_of(e.algorithm)});
  sections.push_back({"run", fields_of(e.run)});
  sections.push_back({"evaluation", fields_of(e.evaluation)});
  sections.push_back({"server", fields_of(e.server)});
  sections.push_back({"faults", fields_of(e.faults)});
  see_other_sections(e, sections);
  return sections;
}

std::vector<std::string> section_names() {
  ExperimentSpec defaults;
  std::vector<std::string> names;
  for (const KeySection& section : sections_of(defaults))
    if (!section.name.empty()) names.emplace_back(section.name);
  return names;
}

Field problem_type_field(std::string& kind) {
  return {"kind", &kind, "the family of objectives", {.words = problem_type_words(), .note = "required"}};
}

std::string_view problem_type_name(const ExperimentSpec& e) { return info_of(e.problem).name; }

AlgorithmSpec algorithm_spec(const ExperimentSpec& e) {
  const AlgorithmSection& a = e.algorithm;
  return {a.name,       a.compressor,       a.step_size, a.batch, e.clients.participation,
          a.parameters, a.custom_compressor};
}

void set_algorithm(ExperimentSpec& e, const AlgorithmSpec& spec) {
  AlgorithmSection& a = e.algorithm;
  a.name = spec.name;
  a.compressor = spec.compressor;
  a.step_size = canonical_text(spec.step_size);
  a.batch = spec.batch;
  a.parameters.clear();
  for (const auto& [key, value] : spec.parameters) a.parameters.emplace_back(key, canonical_text(value));
  e.clients.participation = spec.participation;
}

ProblemSpec problem_spec(const ExperimentSpec& e) {
  ProblemSpec spec;
  spec.clients = e.clients.count;
  spec.seed = e.seed;
  spec.kernels = e.run.kernels;
  spec.problem = e.problem;
  return spec;
}

bool keep_client_state_replicas(const ExperimentSpec& e, bool over_network) {
  const std::string& replicas = e.server.client_state_replicas;
  const bool clients_lose_state = e.faults.state_loss > 0 || e.faults.crashes > 0;
  return replicas == "auto" ? over_network || clients_lose_state || e.run.monitor : replicas == "true";
}

GradNorm grad_norm_rows(const ExperimentSpec& e, bool over_network) {
  if (e.evaluation.grad_norm != GradNorm::kAuto) return e.evaluation.grad_norm;
  return over_network && e.run.stop_at_grad_norm_sq == 0 ? GradNorm::kFirstAndLast : GradNorm::kEvery;
}

ClientMetrics client_metrics(const ExperimentSpec& e) {
  constexpr std::uint32_t kMost = 10'000;  // rows that a run writes by default
  if (e.run.evaluate_every == 0) return ClientMetrics::kNone;
  if (e.run.client_metrics != ClientMetrics::kAuto) return e.run.client_metrics;
  return e.clients.count > kMost ? ClientMetrics::kNone : ClientMetrics::kLast;
}

bool is_unrestorable(const ExperimentSpec& e) {
  const ClientState state = find_algorithm(e.algorithm.name).traits.client_state;
  return has(state, ClientState::kPrivate) ||
         (has(state, ClientState::kMirrored) && !keep_client_state_replicas(e, /*over_network=*/true));
}

bool survives_power(const ExperimentSpec& e) {
  if (e.server.durability == Survives::kAuto) return is_unrestorable(e);
  return e.server.durability == Survives::kPower;
}

}  // namespace gradwire
