// The sums and the map of problem.normalize on the wire: Joins and Welcomes in pieces, because a header is
// short. Bytes in, numbers out; no I/O.
#pragma once

#include <string>

#include "algorithms/core/message.h"
#include "base/result.h"
#include "engine/data/normalize.h"

namespace gradwire {

namespace wire {
class FeatureScaling;
class FeatureSums;
class Join;
}  // namespace wire

// Returns the frames of a client that sends its sums. `join` describes the samples as they are.
std::string sums_frames(wire::Join join, const ClientSums& sums);
// Appends a piece. Returns whether it was the last one. Returns an error if the lists have different lengths
// or the features are not in order; check_sums() checks the rest, once all pieces are there. REQUIRES:
// `sums.columns` is set.
Result<bool> take_sums(const wire::FeatureSums& piece, ClientSums& sums);

// Returns the frames that tell a client the map.
std::string scaling_frames(const Normalization& map, ClientId client);
// Appends a piece. Returns whether it was the last one.
Result<bool> take_scaling(const wire::FeatureScaling& piece, Normalization& map);

// Writes and reads the whole map as one message, for the state of a server.
std::string pack_scaling(const Normalization& map);
Result<Normalization> unpack_scaling(const std::string& bytes, Normalize kind);

}  // namespace gradwire
