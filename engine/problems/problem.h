// The list of the problem types, and from one of them and a client's samples to its oracle.
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
#include "engine/oracle.h"
#include "engine/problems/char_mlp.h"
#include "engine/problems/cnn.h"
#include "engine/problems/gpt.h"
#include "engine/problems/least_squares.h"
#include "engine/problems/logistic.h"
#include "engine/problems/mlp.h"
#include "engine/problems/problem_type.h"
#include "engine/problems/quadratic.h"
#include "engine/smoothness/ordered_scan.h"
#include "engine/smoothness/smoothness.h"

namespace gradwire {

// [problem] of an experiment. A problem type is one of these.
using ProblemType = std::variant<Quadratic, LeastSquares, Logistic, Mlp, CharMlp, Gpt, Cnn>;

// Returns false if f is known to fall without bound.
bool has_minimum(const ProblemType& problem);
// Returns whether all clients are known to have the same f_i, whatever their number.
bool has_equal_clients(const ProblemType& problem);

// ---- what kinds there are ----

enum class DataForm : std::uint8_t { kNone, kRows, kText };

struct ProblemInfo : ProblemTraits {
  DataForm data = DataForm::kNone;
  bool has_smoothness = false;  // closed-form constants: step_size = "theory" needs no estimate

  bool needs_data() const { return data != DataForm::kNone; }
};
std::span<const ProblemInfo> problem_types();
const ProblemInfo& info_of(const ProblemType& problem);
// With the defaults of the kind. Throws ConfigError("problem.kind") where there is no such kind.
ProblemType problem_of(const std::string& kind);
// The keys of a live problem but for `kind`, in the order of the file.
std::vector<Field> problem_fields(ProblemType& problem);
// What is between the keys. Throws ConfigError.
void check_problem(const ProblemType& problem);

// ---- what a problem reads ----

// Null: the kind has no data.
const SampleSource* sources_of(const ProblemType& problem);
SampleSource* sources_of(ProblemType& problem);
const RowsData* rows_of(const ProblemType& problem);                  // null: it does not read rows
std::optional<TextReading> text_reading(const ProblemType& problem);  // nothing: it does not read text

// ---- with the clients that share it ----

struct ProblemSpec : AllClients {
  ProblemType problem;

  const ProblemInfo& info() const { return info_of(problem); }
};

// What follows from all samples together. Labels are left out for kinds that take them as numbers. The
// alphabet is that of whole files, so that d does not depend on how they are split.
DataSchema schema_of(const SharedSamples& samples, const ProblemSpec& spec);

// Throws DataError (one line) when labels, letters or shapes do not fit the problem, e.g. logistic with three
// labels.
void check_schema(const ProblemSpec& spec, const DataSchema& schema);

// Of what a client of this precision keeps for the way back through a network. Throws ConfigError
// ("problem.activation_budget") where it is less than any client can compute in. A warning where
// problem.activations saves nothing; else, and without a network, "". REQUIRES: check_schema passed.
template <class Real>
std::string check_activations(const ProblemSpec& spec, const DataSchema& schema);

// Whether RandomPaths (engine/oracle.h) change the gradients of its clients. REQUIRES: check_schema
// passed.
bool has_random_paths(const ProblemSpec& spec, const DataSchema& schema);

// d, the length of x.
std::size_t model_dim(const ProblemSpec& spec, const DataSchema& schema);

// x0 = "model": the problem's own start, shape (d); a function of spec.seed (networks: scaled random weights;
// quadratic: sqrt(d) e_1; otherwise zeros).
std::vector<double> model_start(const ProblemSpec& spec, const DataSchema& schema);

// `client` in [0, spec.clients). The oracle copies what it needs from the part. REQUIRES: check_schema
// passed.
template <class Real>
std::unique_ptr<Oracle<Real>> make_oracle(const ProblemSpec& spec, const DataSchema& schema,
                                          const ClientDataset& part, std::uint32_t client);

// The functions of all clients: each is what make_oracle() gives, bit for bit. REQUIRES: the same, and
// samples.clients() == spec.clients (kinds without data ignore the samples).
template <class Real>
std::unique_ptr<ClientObjectives<Real>> make_client_objectives(const ProblemSpec& spec,
                                                               const DataSchema& schema,
                                                               SharedSamples samples);

// The constants of one client, from its own samples alone. REQUIRES: the kind has_smoothness.
ClientSmoothness client_smoothness(const ProblemSpec& spec, const DataSchema& schema,
                                   const ClientDataset& part, std::uint32_t client);

// The constants of f = sum_i weights[i] f_i (weights empty: 1/n each). REQUIRES: the kind has_smoothness;
// parts.size() == spec.clients, or, where processes share them, those of this one (kinds without data ignore
// the parts).
Smoothness smoothness(const ProblemSpec& spec, const DataSchema& schema, std::span<const ClientDataset> parts,
                      std::span<const double> weights, const OrderedScan& scan = {});

// A lower bound of mu that is known without data: 0 where f need not be strongly convex. REQUIRES: the kind
// has_smoothness.
double known_convexity(const ProblemSpec& spec);

// For a server that sees no data: L is the mean of the L_i (an upper bound), mu the mean of the mu_i, exact =
// false; means by `weights` (empty: 1/n each). Kinds without data: the exact constants. REQUIRES: the kind
// has_smoothness.
Smoothness smoothness_from_clients(const ProblemSpec& spec, std::span<const ClientSmoothness> clients,
                                   std::span<const double> weights = {});

}  // namespace gradwire
