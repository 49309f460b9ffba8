// The list of problem types, and functions that make oracles from a problem type and the samples of clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/field.h"
#include "engine/client_objectives.h"
#include "engine/data/client_dataset.h"
#include "engine/data/shared_samples.h"
#include "engine/problems/char_mlp.h"
#include "engine/problems/cnn.h"
#include "engine/problems/custom.h"
#include "engine/problems/gpt.h"
#include "engine/problems/least_squares.h"
#include "engine/problems/logistic.h"
#include "engine/problems/mlp.h"
#include "engine/problems/problem_type.h"
#include "engine/problems/quadratic.h"
#include "engine/smoothness/ordered_scan.h"
#include "engine/smoothness/smoothness.h"
#include "gradwire/oracle.h"

namespace gradwire {

// [problem] of an experiment: one of the problem types.
using ProblemType = std::variant<Quadratic, LeastSquares, Logistic, Mlp, CharMlp, Gpt, Cnn, Custom>;

// Returns false if f is known to fall without bound.
bool has_minimum(const ProblemType& problem);
// Returns true if all clients are known to have the same f_i, for any number of clients.
bool has_equal_clients(const ProblemType& problem);

// ---- problem types ----

enum class DataForm : std::uint8_t { kNone, kRows, kText };
// Returns "nothing", "samples" or "text".
std::string_view name_of(DataForm data);

struct ProblemInfo : ProblemTraits {
  DataForm data = DataForm::kNone;
  bool has_smoothness = false;  // closed-form constants: step_size = "theory" needs no estimate

  bool needs_data() const { return data != DataForm::kNone; }
};
std::span<const ProblemInfo> problem_types();
const ProblemInfo& info_of(const ProblemType& problem);
// Returns the problem type with its defaults. Throws ConfigError("problem.kind") if the kind is unknown.
ProblemType problem_of(const std::string& kind);
// Returns the keys of `problem` except `kind`, in the order of the file. `problem` must outlive them.
std::vector<Field> problem_fields(ProblemType& problem);
// Checks conditions between keys. Throws ConfigError.
void check_problem(const ProblemType& problem);

// ---- the data of a problem ----

// Returns the source, or nullptr if the problem type has no data.
const SampleSource* sources_of(const ProblemType& problem);
SampleSource* sources_of(ProblemType& problem);
const RowsData* rows_of(const ProblemType& problem);                  // null if it does not read rows
std::optional<TextReading> text_reading(const ProblemType& problem);  // nullopt if it does not read text

// ---- problems of several clients ----

struct ProblemSpec : AllClients {
  ProblemType problem;

  const ProblemInfo& info() const { return info_of(problem); }
};

// Returns the schema of all samples together. It has no labels for problem types that use them as numbers.
// The alphabet is that of whole files, so d does not depend on how they are split.
DataSchema schema_of(const SharedSamples& samples, const ProblemSpec& spec);

// Throws DataError (one line) if labels, letters or shapes do not fit the problem, as in logistic with three
// labels.
void check_schema(const ProblemSpec& spec, const DataSchema& schema);

// Checks the activations that a client of this precision keeps for the backward pass. Throws
// ConfigError("problem.activation_budget") if no client can compute with that budget. Returns a warning if
// problem.activation_dtype saves nothing, else "". REQUIRES: check_schema passed.
template <class Real>
std::string check_activations(const ProblemSpec& spec, const DataSchema& schema);

// Returns true if RandomPaths (include/gradwire/oracle.h) changes the gradients of the clients. REQUIRES:
// check_schema passed.
bool has_random_paths(const ProblemSpec& spec, const DataSchema& schema);

// Returns d, the length of x.
std::size_t model_dim(const ProblemSpec& spec, const DataSchema& schema);

// Returns true if models of this problem type predict from a row of features.
bool predicts_from_rows(const ProblemType& problem);
// A prediction for one row: the label, and its probability; or the value, if labels are no classes.
struct Prediction {
  double value;  // a label of the schema, or a real number
  std::optional<double> probability;
};
// Predicts each row with the model x, shape (d). Does not read their labels. Throws DataError if a row has a
// feature that the model lacks. REQUIRES: predicts_from_rows(), check_schema passed.
std::vector<Prediction> predict(const ProblemSpec& spec, const DataSchema& schema, const Dataset& rows,
                                std::span<const double> x);
// Returns R(x), or nullopt if the problem has no regularizer.
std::optional<double> regularizer_of(const ProblemType& problem, std::span<const double> x);

// Returns the initial parameters of the model, shape (d), for x0 = "model". They depend on spec.seed
// (networks: scaled random weights; quadratic: sqrt(d) e_1; otherwise zeros).
std::vector<double> model_start(const ProblemSpec& spec, const DataSchema& schema);

// Returns the oracle of `client` in [0, spec.clients). It takes the memory of the part where it can.
// REQUIRES: check_schema passed.
template <class Real>
std::unique_ptr<Oracle<Real>> make_oracle(const ProblemSpec& spec, const DataSchema& schema,
                                          ClientDataset part, std::uint32_t client);

// Returns the functions of all clients, each equal to that of make_oracle(), bit for bit. REQUIRES:
// check_schema passed; samples.clients() == spec.clients (problem types without data ignore the samples).
template <class Real>
std::unique_ptr<ClientObjectives<Real>> make_client_objectives(const ProblemSpec& spec,
                                                               const DataSchema& schema,
                                                               SharedSamples samples);

// Returns the constants of one client, from its own samples alone. REQUIRES: the problem type has_smoothness.
ClientSmoothness client_smoothness(const ProblemSpec& spec, const DataSchema& schema,
                                   const ClientDataset& part, std::uint32_t client);

// Returns the constants of f = sum_i weights[i] f_i (1/n each if weights is empty). REQUIRES: the problem
// type has_smoothness; parts.size() == spec.clients, or the number of this process's clients if processes
// share them. Problem types without data ignore the parts.
Smoothness smoothness(const ProblemSpec& spec, const DataSchema& schema, std::span<const ClientDataset> parts,
                      std::span<const double> weights, const OrderedScan& scan = {});

// Returns a lower bound of mu that is known without data: 0 if f need not be strongly convex. REQUIRES: the
// problem type has_smoothness.
double known_convexity(const ProblemSpec& spec);

// Returns the constants for a server that sees no data. L is the mean of the L_i (an upper bound), mu the
// mean of the mu_i, and exact is false. Means use `weights` (1/n each if empty). Problem types without data
// have exact constants. REQUIRES: the problem type has_smoothness.
Smoothness smoothness_from_clients(const ProblemSpec& spec, std::span<const ClientSmoothness> clients,
                                   std::span<const double> weights = {});

}  // namespace gradwire
