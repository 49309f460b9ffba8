// Normalisation of features (problem.normalize). The map of each feature comes from the training samples of
// all clients, and test samples get the same map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/shares.h"

namespace gradwire {

// kStandard: mean 0 and standard deviation 1. kMinMax: from 0 to 1. kUnitRows: each sample is divided by its
// Euclidean norm; a sample of zeros stays.
enum class Normalize : std::uint8_t { kNone, kStandard, kMinMax, kUnitRows };

// The word of problem.normalize: "minmax".
constexpr std::string_view normalize_word(Normalize kind) {
  switch (kind) {
    case Normalize::kNone: return "none";
    case Normalize::kStandard: return "standard";
    case Normalize::kMinMax: return "minmax";
    case Normalize::kUnitRows: return "unit_rows";
  }
  return "";
}
// Returns true if the map depends on the samples of all clients.
constexpr bool needs_sums(Normalize kind) {
  return kind == Normalize::kStandard || kind == Normalize::kMinMax;
}

// A feature is sparse if fewer than one in kSparseFactor samples has it. It is then only divided, because
// a shift would store all its zeros. So data take at most kSparseFactor times their memory.
inline constexpr std::uint64_t kSparseFactor = 10;

// The map of each feature: (value - shift) / scale.
struct Normalization {
  Normalize kind = Normalize::kNone;
  std::vector<double> shift, scale;  // empty for kUnitRows; features beyond their end do not change
  std::size_t sparse = 0;            // features that lack the shift that `kind` asks for

  bool operator==(const Normalization&) const = default;
};

// Returns the map for the samples that clients hold. Adds the sums of each client in the order of clients, so
// a sample that two clients hold counts twice. A feature with equal values everywhere has scale 1. Throws
// DataError if a sum is not finite. REQUIRES: `kind` is not kNone.
Normalization normalization_of(const Dataset& data, const Shares& shares, Normalize kind);

// Normalises each sample. The data then have all features of the map.
void normalize(Dataset& data, const Normalization& map);

// Returns a warning about sparse features, or "".
std::string sparse_warning(const Normalization& map);

}  // namespace gradwire
