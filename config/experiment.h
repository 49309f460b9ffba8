// An experiment as data: what the file says, what the server holds, what a client is told.
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

struct Experiment {
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
    visit("name", self.name, "results go to results/NAME",
          {.note = "the file's name without .toml", .check = check_name});
    visit("seed", self.seed, "every random number of the run is a function of it");
    visit("precision", self.precision, "of the model and of all vectors that travel");
  }
};

struct KeySection {
  std::string_view name;  // empty: the keys before the first section
  std::vector<Field> fields;

  std::string path(std::string_view key) const;  // "run.rounds"
};
// Of a live experiment, which must outlive them, in the order of the file. [problem] is without `kind`,
// [algorithm] without the algorithm's own parameters.
std::vector<KeySection> sections_of(Experiment& experiment);
std::vector<std::string> section_names();  // without the nameless one

// `kind` of [problem] as a field of `kind`, which must outlive it.
Field problem_type_field(std::string& kind);
std::string_view problem_type_name(const Experiment& experiment);

// [algorithm] and clients.participation. set_algorithm() respells numbers in their shortest exact form.
AlgorithmSpec algorithm_spec(const Experiment& experiment);
void set_algorithm(Experiment& experiment, const AlgorithmSpec& spec);

// [problem] and the clients that share it.
ProblemSpec problem_spec(const Experiment& experiment);

// Checks each value, and what is between values. Throws ConfigError.
void check_experiment(const Experiment& experiment);

// A file that reads back to the same experiment: numbers in the shortest form that is exact. REQUIRES:
// check_experiment() passes.
std::string to_toml(const Experiment& experiment);

// server.mirrors, with "auto" decided. `over_network`: clients are processes of their own.
bool keep_mirrors(const Experiment& experiment, bool over_network);
// evaluation.grad_norm, with "auto" decided. `over_network`: by a server that was started by itself.
GradNorm grad_norm_rows(const Experiment& experiment, bool over_network);
// run.client_metrics, with "auto" decided.
ClientMetrics client_metrics(const Experiment& experiment);
// Whether clients keep some state that nobody can give back to them once server and clients disagree.
bool is_unrestorable(const Experiment& experiment);
// server.durability, with "auto" decided: whether a committed round is to survive a loss of power.
bool survives_power(const Experiment& experiment);

struct KeyHelp {
  std::string key, type, fallback, meaning;
};
// All keys but the algorithms' own parameters, sections together. Where problem types differ, each is
// named.
std::vector<KeyHelp> experiment_keys();

}  // namespace gradwire
