// Encodes a committed round for the journal of a run, and replays it into the server algorithm.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_segments.h"
#include "proto/wire/codec.h"
#include "rounds/round_loop.h"

namespace gradwire {

// Converts RunProgress to bytes and back.
std::string save_progress(const RunProgress& progress);
bool load_progress(std::string_view bytes, RunProgress& progress);

// Reads the bytes of save_progress(), without the list of clients. Returns nullopt if save_progress() did not
// write them.
std::optional<RunProgress> peek_progress(std::string_view bytes);
// Reads the progress after the round of a record, without its list of clients. Returns nullopt if this is not
// the record of a round.
std::optional<RunProgress> peek_record(std::string_view record);

// Encodes and replays records of two kinds. The first kind has the replies of a round, as received or as
// encoded without compression; replay() gives them to apply(). The second kind has the algorithm and the
// progress after the round. It is used if it is shorter.
template <class Real>
class RoundRecords {
 public:
  // `context` is that of the run's codec.
  explicit RoundRecords(CodecContext context);
  ~RoundRecords();

  // Encodes a round. `state_bytes` is about the size of server.save(). The segments of the record refer to
  // the replies or the algorithm. They are valid until the next call.
  std::span<const std::string_view> encode(const RoundCommit<Real>& commit,
                                           const ServerAlgorithm<Real>& server, std::size_t state_bytes);
  // Drops the views of the record. Call it once the record is written.
  void release() { record_.clear(); }
  // Applies a record. Returns false if it is not from this run, or not for the round after progress.round.
  bool replay(std::string_view record, ServerAlgorithm<Real>& server, RunProgress& progress);

 private:
  std::uint64_t bytes_of_replies(const RoundCommit<Real>& commit);
  void encode_replies(const RoundCommit<Real>& commit);
  bool replay_replies(std::string_view bytes, ServerAlgorithm<Real>& server, RunProgress& progress);

  Codec<Real> codec_;
  std::vector<std::unique_ptr<UplinkSlot<Real>>> slots_;
  ByteSegments record_;
};

}  // namespace gradwire
