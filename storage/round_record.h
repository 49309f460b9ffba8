// A committed round as bytes, and back into the server algorithm: what the journal of a run holds.
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

// Ledger <-> bytes.
std::string save_progress(const RunProgress& progress);
bool load_progress(std::string_view bytes, RunProgress& progress);

// Reads what save_progress() wrote, without the list of clients; nothing: save_progress() did not write it.
std::optional<RunProgress> peek_progress(std::string_view bytes);
// The progress as it is after the round of a record, without its list of clients; nothing: this is no record
// of a round.
std::optional<RunProgress> peek_record(std::string_view record);

// Two kinds of record: the replies of a round as they came, or as they would be on the wire without
// compression, which replay() gives to apply(); or, where that is shorter, the algorithm and the progress as
// they are after it.
template <class Real>
class RoundRecords {
 public:
  // Of the run's codec.
  explicit RoundRecords(CodecContext context);
  ~RoundRecords();

  // state_bytes: about the size of server.save(). The pieces of the record view the replies, or the
  // algorithm, and live until the next call.
  std::span<const std::string_view> encode(const RoundCommit<Real>& commit,
                                           const ServerAlgorithm<Real>& server, std::size_t state_bytes);
  // To be called when the record is written: forgets what it views.
  void release() { record_.clear(); }
  // False: the record is not of this run, or not of the round after progress.round.
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
