// Problem types. To add one, write a header like least_squares.h or gpt.h, and add its name to ProblemType
// (engine/problems/problem.h). A problem type is a struct of its settings with
//
//   static constexpr ProblemTraits traits
//   static void fields(auto& self, auto&& visit)   its keys in [problem]: base/field.h
//   void check() const                             conditions between keys; throws ConfigError
//   void check(const DataSchema&) const            conditions on the data; throws DataError
//   std::size_t dim(const DataSchema&) const       d; from here on REQUIRES: check(schema) passed
//   std::vector<double> start(const DataSchema&, seed) const
//                                                  x0 = "model", shape (d)
//   client_objectives<Real>(const DataSchema&, SharedSamples, AllClients) const
//                                                  a unique_ptr<ClientObjectives<Real>>
//
// or, in place of client_objectives(), the function of each client with its own copy of its samples:
//
//   oracle<Real>(const DataSchema&, const ClientDataset&, client, AllClients) const
//                                                  a unique_ptr<Oracle<Real>>
//
// and, if the constants of smoothness have a closed form,
//
//   ClientSmoothness client_smoothness(const DataSchema&, const ClientDataset&, client, AllClients) const
//   Smoothness smoothness(const DataSchema&, parts, weights, AllClients, OrderedScan) const
//   double known_convexity(AllClients) const
//   Smoothness smoothness_from_clients(clients, weights, AllClients) const
//
// and, if a model predicts from one row of features,
//
//   std::vector<double> outputs(const DataSchema&, const Dataset&, std::span<const double> x) const
//                                                  the outputs of each row: a^T x, or a logit for each label
//
// A problem type that reads rows has a member `rows` (RowsData). One that reads text has `text` (TextData),
// the constant kTextForm and context(): engine/problems/sources.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/kernels/select.h"

namespace gradwire {

struct ProblemTraits {
  std::string_view name;
  std::string_view summary;       // one line for `gradwire list`
  bool has_classes = false;       // labels are classes that the clients agree on
  bool is_network = false;        // run.x0 is "model" by default, not "zeros"
  bool brings_functions = false;  // the program that runs the clients has the functions (custom.h)
};

// The metadata that clients must agree on before any of them can build an oracle.
struct DataSchema {
  std::size_t columns = 0;          // number of features
  std::vector<double> labels = {};  // the distinct labels of all clients, ascending
  std::string alphabet = {};        // the distinct letters of all clients, ascending bytes
  // For messages: "column 5, 'id', of pets.csv", and the texts that labels stand for. Empty if unknown.
  std::string label_place = {};
  std::vector<std::string> label_texts = {};
  std::vector<std::string> feature_names = {};  // the names in a table's header; empty if unknown
};

// Facts that all clients of a run share. Problem types without data draw the function of each client from the
// seed.
struct AllClients {
  std::uint32_t clients = 1;  // n
  std::uint64_t seed = 1;
  KernelSet kernels = KernelSet::kBest;  // computes networks and Hessians
};

inline constexpr double kMaxWidth = 1e6;  // numbers in a layer
inline constexpr double kMaxContext = 4096;
inline constexpr double kMaxLayers = 1000;
inline constexpr double kMaxModelDim = 4294967294.0;  // coordinates have 32-bit numbers

}  // namespace gradwire
