#include "proto/wire/feature_messages.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "compressors/payload.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

// Pieces of 48 KB, so that headers stay below kMaxHeaderBytes.
constexpr std::size_t kSumsInPiece = 2048, kFeaturesInPiece = 3072;

void write_scaling(const Normalization& map, std::size_t first, std::size_t count,
                   wire::FeatureScaling& piece) {
  const auto from = static_cast<std::ptrdiff_t>(first), end = static_cast<std::ptrdiff_t>(first + count);
  piece.mutable_shift()->Assign(map.shift.begin() + from, map.shift.begin() + end);
  piece.mutable_scale()->Assign(map.scale.begin() + from, map.scale.begin() + end);
  if (first == 0) piece.set_sparse(static_cast<std::uint32_t>(map.sparse));
}

}  // namespace

std::string sums_frames(wire::Join join, const ClientSums& sums) {
  std::string frames;
  for (std::size_t k = 0; k <= sums.features.size(); k += kSumsInPiece) {
    // The first message has only the description, which may fill a header with labels.
    join.mutable_sums()->set_more(true);
    frames += control_frame(FrameType::kJoin, join);
    join = {};
    wire::FeatureSums& piece = *join.mutable_sums();
    const std::size_t end = std::min(k + kSumsInPiece, sums.features.size());
    for (std::size_t f = k; f < end; ++f) {
      piece.add_feature(sums.features[f].feature);
      piece.add_count(sums.features[f].count);
      piece.add_first(sums.features[f].first);
      piece.add_second(sums.features[f].second);
    }
  }
  return frames + control_frame(FrameType::kJoin, join);
}

Result<bool> take_sums(const wire::FeatureSums& piece, ClientSums& sums) {
  const int count = piece.feature_size();
  if (piece.count_size() != count || piece.first_size() != count || piece.second_size() != count)
    return Error{"Join: the lists of sums have different lengths"};
  for (int k = 0; k < count; ++k) {
    const std::uint32_t feature = piece.feature(k);
    if (feature >= sums.columns || (!sums.features.empty() && feature <= sums.features.back().feature))
      return Error{"Join: the features of the sums are not ascending, or too large"};
    sums.features.push_back({feature, piece.count(k), piece.first(k), piece.second(k)});
  }
  return !piece.more();
}

std::string scaling_frames(const Normalization& map, ClientId client) {
  std::string frames;
  std::size_t first = 0;
  do {
    const std::size_t count = std::min(kFeaturesInPiece, map.shift.size() - first);
    wire::Welcome welcome;
    welcome.set_client(client);
    write_scaling(map, first, count, *welcome.mutable_scaling());
    first += count;
    if (first < map.shift.size()) welcome.mutable_scaling()->set_more(true);
    frames += control_frame(FrameType::kWelcome, welcome);
  } while (first < map.shift.size());
  return frames;
}

Result<bool> take_scaling(const wire::FeatureScaling& piece, Normalization& map) {
  const auto is_shift = [](double shift) { return std::isfinite(shift); };
  const auto is_scale = [](double scale) { return std::isfinite(scale) && scale > 0; };
  if (piece.shift_size() != piece.scale_size() || !std::ranges::all_of(piece.shift(), is_shift) ||
      !std::ranges::all_of(piece.scale(), is_scale) || piece.has_sparse() != map.shift.empty() ||
      map.shift.size() + static_cast<std::size_t>(piece.shift_size()) > kMaxDim)
    return Error{"the shifts and scales of problem.normalize are damaged"};
  map.shift.insert(map.shift.end(), piece.shift().begin(), piece.shift().end());
  map.scale.insert(map.scale.end(), piece.scale().begin(), piece.scale().end());
  if (piece.has_sparse()) map.sparse = piece.sparse();
  return !piece.more();
}

std::string pack_scaling(const Normalization& map) {
  wire::FeatureScaling whole;
  write_scaling(map, 0, map.shift.size(), whole);
  return whole.SerializeAsString();
}

Result<Normalization> unpack_scaling(const std::string& bytes, Normalize kind) {
  wire::FeatureScaling whole;
  if (!whole.ParseFromString(bytes)) return Error{"its shifts and scales cannot be read"};
  Normalization map;
  map.kind = kind;
  const Result<bool> taken = take_scaling(whole, map);
  if (!taken) return taken.error();
  return map;
}

}  // namespace gradwire
