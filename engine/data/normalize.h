// Normalisation of features (problem.normalize). The map of each feature comes from the training samples of
// all clients, and test samples get the same map. Each client computes its sums on its own, and sums are
// joined in the order of clients. So a simulation and a network get equal bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
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

// The sums of one feature over the values of one client that are not zero.
struct FeatureSums {
  std::uint32_t feature = 0;
  std::uint32_t count = 0;
  // kStandard: the mean and the sum of (value - mean)^2; a mean of equal values is that value, and the sum is
  // then 0. kMinMax: the smallest and the largest value.
  double first = 0, second = 0;

  bool operator==(const FeatureSums&) const = default;
};

struct ClientSums {
  std::size_t columns = 0;
  std::uint64_t samples = 0;
  std::vector<FeatureSums> features;  // ascending; those with a value that is not zero

  bool operator==(const ClientSums&) const = default;
};

// Returns the sums of all rows of one client. REQUIRES: needs_sums(kind).
ClientSums sums_of(const Dataset& data, Normalize kind);

// Returns an error if no samples have these sums, or if sums of these sizes might overflow when they are
// joined. The sums may come from a hostile client.
Status check_sums(const ClientSums& sums, Normalize kind);

// Returns the map for clients with these sums, in order. Throws like normalization_of(). REQUIRES:
// needs_sums(kind), and check_sums() has accepted the sums or they come from sums_of().
Normalization normalization_of(std::span<const ClientSums> clients, Normalize kind);

// Returns the map for the samples that clients hold. Joins the sums of each client in the order of clients,
// so a sample that two clients hold counts twice. A feature with equal values everywhere has scale 1. Throws
// DataError if a sum is not finite. REQUIRES: `kind` is not kNone.
Normalization normalization_of(const Dataset& data, const Shares& shares, Normalize kind);

// Normalises each sample. The data then have all features of the map.
void normalize(Dataset& data, const Normalization& map);

// A feature whose values are much larger at one client than at another one, perhaps in another unit.
struct ScaleGap {
  std::size_t feature = 0, small = 0, large = 0;  // positions of the clients in the sums
  double factor = 0;                              // the ratio of the typical sizes of its values
};
// Returns the widest gap, or nullopt if no factor is above 100. The typical size is the root of the mean
// square of the values that are not zero (kStandard), or the largest one (kMinMax).
std::optional<ScaleGap> widest_scale_gap(std::span<const ClientSums> clients, Normalize kind);

// Returns a warning about sparse features, or "".
std::string sparse_warning(const Normalization& map);

}  // namespace gradwire
