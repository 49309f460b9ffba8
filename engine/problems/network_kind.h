// What the kinds that are networks share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/field.h"
#include "engine/models/samples.h"
#include "engine/network/network.h"
#include "engine/network/network_oracle.h"
#include "engine/part.h"
#include "engine/problems/kind.h"
#include "engine/problems/sources.h"
#include "engine/regularizer.h"

namespace gradwire {

static_assert(static_cast<int>(Activation::kTanh) == 0 && static_cast<int>(Activation::kGelu) == 3);
inline std::span<const std::string_view> words_of(Activation) {
  static constexpr auto words = std::to_array<std::string_view>({"tanh", "relu", "sigmoid", "gelu"});
  return words;
}

// These throw DataError.
void check_range(const char* key, std::size_t value, double high);
void check_widths(const char* key, const std::vector<std::uint32_t>& widths);
void check_activation(Activation activation);
void check_classes(std::string_view kind, const Agreement& agreement);
void check_alphabet(const Agreement& agreement, std::size_t fewest);

// d, start and oracle of a kind that has
//   Network network(const Agreement&) const
//   samples<Real>(const Agreement&, const Part&, Half) const, a unique_ptr of Examples<Real>
enum class Half : std::uint8_t { kTrain, kTest };
template <class Kind>
struct NetworkKind {
  std::size_t dim(const Agreement& agreement) const { return kind().network(agreement).dim(); }
  std::vector<double> start(const Agreement& agreement, std::uint64_t seed) const {
    return kind().network(agreement).start(seed);
  }
  template <class Real>
  std::unique_ptr<Oracle<Real>> oracle(const Agreement& agreement, const Part& part, std::uint32_t /*client*/,
                                       const AllClients&) const {
    return std::make_unique<NetworkOracle<Real>>(
        kind().network(agreement), kind().template samples<Real>(agreement, part, Half::kTrain),
        part.test_count() > 0 ? kind().template samples<Real>(agreement, part, Half::kTest) : nullptr,
        Regularizer::kNone, 0);
  }

 private:
  const Kind& kind() const { return static_cast<const Kind&>(*this); }
};

// samples() of a kind that reads text.
template <class Real>
std::unique_ptr<const Examples<Real>> text_samples(const Agreement& agreement, const Part& part, Half half) {
  const Windows& text = half == Half::kTrain ? part.train_text : part.test_text;
  return std::make_unique<TextSamples<Real>>(with_alphabet(text, agreement.alphabet));
}

}  // namespace gradwire
