// An experiment as data: the contents of the file, which the server keeps and sends to clients.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/core/spec.h"
#include "base/config_error.h"
#include "base/field.h"
#include "config/sections.h"
#include "engine/problems/problem.h"

namespace gradwire {

struct ExperimentSpec {
  std::string name;
  std::uint64_t seed = 1;
  Precision precision = Precision::kFp64;
  ProblemType problem;
  ClientsSection clients;
  AlgorithmSection algorithm;
  RunSection run;
  EvaluationSection evaluation;
  ServerSection server;
  FaultsSection faults;

  // The keys before the first section.
  static void fields(auto& self, auto&& visit) {
    visit("name", self.name, "the results go to results/NAME",
          {.note = "the file's name without .toml", .check = check_name});
    visit("seed", self.seed, "every random number of the run is a function of it");
    visit("precision", self.precision, "precision of the model and of all vectors that are sent");
  }
};

struct KeySection {
  std::string_view name;  // empty for the keys before the first section
  std::vector<Field> fields;

  std::string path(std::string_view key) const;  // "run.rounds"
};
// Returns the sections of `experiment` in the order of the file. They refer to `experiment`, which must
// outlive them. [problem] is without `kind`, and [algorithm] is without the algorithm's own parameters.
std::vector<KeySection> sections_of(ExperimentSpec& experiment);
// Returns the names of all sections, without the keys before the first section.
std::vector<std::string> section_names();

// Returns the field of the key problem.kind. It refers to `kind`, which must outlive it.
Field problem_type_field(std::string& kind);
std::string_view problem_type_name(const ExperimentSpec& experiment);

// Get and set [algorithm] and clients.participation. set_algorithm() writes numbers in their shortest exact
// form.
AlgorithmSpec algorithm_spec(const ExperimentSpec& experiment);
void set_algorithm(ExperimentSpec& experiment, const AlgorithmSpec& spec);

// Returns [problem], the number of clients and the seed.
ProblemSpec problem_spec(const ExperimentSpec& experiment);

// Checks each value, and that the values fit together. Throws ConfigError.
void check_experiment(const ExperimentSpec& experiment);

// Returns the text of a file that reads back to the same experiment. Numbers have their shortest exact form.
// REQUIRES: check_experiment() passes.
std::string to_toml(const ExperimentSpec& experiment, Names names = Names::kCurrent);

// Returns server.client_state_replicas with "auto" resolved. `over_network` is true if clients are separate
// processes.
bool keep_client_state_replicas(const ExperimentSpec& experiment, bool over_network);
// Returns evaluation.grad_norm with "auto" resolved. `over_network` is true for a gradwire-server that the
// user started.
GradNorm grad_norm_rows(const ExperimentSpec& experiment, bool over_network);
// Returns run.client_metrics with "auto" resolved.
ClientMetrics client_metrics(const ExperimentSpec& experiment);
// Returns whether clients keep state that the server cannot restore once server and clients disagree.
bool is_unrestorable(const ExperimentSpec& experiment);
// Returns whether a committed round must survive a power failure: server.durability with "auto" resolved.
bool survives_power(const ExperimentSpec& experiment);

struct KeyHelp {
  std::string key, type, fallback, meaning;
};
// Returns all keys except the algorithms' own parameters, section by section. A text that differs between
// problem types names the types.
std::vector<KeyHelp> experiment_keys();
// Returns the keys of [problem] for one problem type, without `kind`.
std::vector<KeyHelp> problem_keys(std::string_view kind);

}  // namespace gradwire
