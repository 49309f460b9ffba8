// The common part of network problems.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/field.h"
#include "engine/client_objectives.h"
#include "engine/data/shared_samples.h"
#include "engine/nn/models/samples.h"
#include "engine/nn/network_oracle.h"
#include "engine/problems/problem_type.h"
#include "engine/problems/sources.h"
#include "gradwire/network.h"

namespace gradwire {

static_assert(static_cast<int>(Activation::kTanh) == 0 && static_cast<int>(Activation::kGelu) == 3);
inline std::span<const std::string_view> words_of(Activation) {
  static constexpr auto words = std::to_array<std::string_view>({"tanh", "relu", "sigmoid", "gelu"});
  return words;
}

inline std::span<const std::string_view> words_of(KeptActivations) {
  static constexpr auto words = std::to_array<std::string_view>({"exact", "bfloat16"});
  return words;
}

// Text is "none", "sqrt", or a whole number of bytes with the largest unit of KB, MB or GB (powers of 1024)
// that divides it.
template <>
struct TextCodec<ActivationBudget> {
  static bool read(std::string_view text, ActivationBudget& out);
  static std::string write(const ActivationBudget& budget);
  static constexpr std::string_view expected = "\"none\", \"sqrt\" or a size such as \"4MB\" (or KB, GB)";
};

[[noreturn]] void refuse_budget(const BudgetTooSmall& error);  // throws DataError
// Throws ConfigError for a budget that is refused before there is a client.
[[noreturn]] void refuse_budget_setting(const BudgetTooSmall& error);
// Returns a warning if activations in bfloat16 take at least as many bytes as exact ones, else "".
std::string no_saving_warning(std::uint64_t kept, std::uint64_t exact);
// Throw DataError if the value, the schema or the alphabet cannot be used.
void check_range(const char* key, std::size_t value, double high);
void check_widths(const char* key, const std::vector<std::uint32_t>& widths);
void check_activation(Activation activation);
void check_classes(std::string_view kind, const DataSchema& schema);
void check_alphabet(const DataSchema& schema, std::size_t fewest);

struct ActivationSettings {
  KeptActivations kept = KeptActivations::kExact;
  ActivationBudget budget;

  static void fields(auto& self, auto&& visit) {
    visit("activation_dtype", self.kept,
          "type of the activations kept for the backward pass; bfloat16: rounded gradients, about two "
          "thirds of the memory in deep transformers, and no saving in small networks",
          {.quiet = true, .old_key = "activations"});
    visit("activation_budget", self.budget,
          "memory of a client for the gradient of a microbatch: activations that do not fit are computed "
          "again, with the same bits; `sqrt`: keeps about sqrt(n) of n places with few live numbers",
          {.quiet = true});
  }
};

// d, start and client objectives of a problem type that has
//   Network network(const DataSchema&) const
//   ActivationSettings activations, visited by ActivationSettings::fields()
//   samples<Real>(const DataSchema&, Dataset&& or const Windows&) const, a unique_ptr of Examples<Real>
template <class Kind>
struct NetworkProblem {
  std::size_t dim(const DataSchema& schema) const { return kind().network(schema).dim(); }
  std::vector<double> start(const DataSchema& schema, std::uint64_t seed) const {
    return kind().network(schema).start(seed);
  }
  template <class Real>
  std::unique_ptr<ClientObjectives<Real>> client_objectives(const DataSchema& schema, SharedSamples samples,
                                                            const AllClients& all) const {
    using Oracle = NetworkOracle<Real>;
    std::unique_ptr<const Examples<Real>> train, test;
    if constexpr (requires(const Kind k) { k.rows; }) {
      train = kind().template samples<Real>(schema, std::move(samples.train));
      test = kind().template samples<Real>(schema, std::move(samples.test));
    } else {
      train = kind().template samples<Real>(schema, samples.train_text);
      test = kind().template samples<Real>(schema, samples.test_text);
    }
    try {
      return std::make_unique<ClientObjectivesOf<Real, Oracle>>(
          Oracle(network_to_run(schema), std::move(train), std::move(samples.train_shares), std::move(test),
                 std::move(samples.test_shares), all.kernels));
    } catch (const BudgetTooSmall& error) {
      refuse_budget(error);
    }
  }
  // Predicts from rows. Their labels are not read.
  std::vector<double> outputs(const DataSchema& schema, const Dataset& data,
                              std::span<const double> x) const requires requires(const Kind k) {
    k.rows;
  }
  {
    Dataset unlabelled = data;
    unlabelled.label.assign(data.rows(), schema.labels.front());
    const auto examples = kind().template samples<double>(schema, std::move(unlabelled));
    Executor<double> executor(kind().network(schema));
    const std::size_t width = executor.output_channels();
    std::vector<double> outputs(data.rows() * width);
    executor.outputs(
        x, data.rows(), [&](std::size_t k) { return (*examples)[k]; },
        [&](std::size_t k, std::span<const double> row) {
          std::copy(row.begin(), row.end(), outputs.data() + k * width);
        });
    return outputs;
  }
  // Implements check_activations() of problem.h.
  template <class Real>
  std::string check_activations(const DataSchema& schema) const {
    const ActivationSettings& asked = kind().activations;
    Network network = network_to_run(schema);
    try {
      if (!asked.budget.is_none()) (void)Executor<Real>::arena_bytes_of(network);
    } catch (const BudgetTooSmall& error) {
      refuse_budget_setting(error);
    }
    if (asked.kept == KeptActivations::kExact) return "";
    network.limit_activations({});
    const std::uint64_t kept = Executor<Real>::arena_bytes_of(network);
    network.keep_activations(KeptActivations::kExact);
    return no_saving_warning(kept, Executor<Real>::arena_bytes_of(network));
  }
  bool random_paths(const DataSchema& schema) const { return has_random_paths(kind().network(schema)); }

 private:
  Network network_to_run(const DataSchema& schema) const {
    Network network = kind().network(schema);
    network.keep_activations(kind().activations.kept);
    network.limit_activations(kind().activations.budget);
    return network;
  }
  const Kind& kind() const { return static_cast<const Kind&>(*this); }
};

// Implements samples() of a problem type that reads text.
template <class Real>
std::unique_ptr<const Examples<Real>> text_samples(const DataSchema& schema, const Windows& text) {
  return std::make_unique<TextSamples<Real>>(with_alphabet(text, schema.alphabet));
}

}  // namespace gradwire
