// Converts messages to bytes and back, without loss and without I/O. Requests and uplinks become a small
// protobuf header and raw payload sections, which stay in the algorithm's memory (scatter-gather). The
// receiver reads plain sections straight into the slot's vectors.
//
// A part has up to two sections: indices and values. Indices are bit-packed at ceil(log2 d) bits, or a d-bit
// bitmap if that is smaller; seeded parts and ranges have none. Values are plain little-endian reals, or
// packed as docs/reference/wire.md says. A payload with a second summand becomes two parts, the first marked
// as continued. A section of kZstdMinBytes or more is zstd-compressed if a trial on its first kZstdTrialBytes
// gains 5 %.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/core/message.h"
#include "base/result.h"
#include "compressors/compressor.h"
#include "proto/wire/frame.h"

namespace gradwire {

inline constexpr std::size_t kZstdMinBytes = 1024;
inline constexpr std::size_t kZstdTrialBytes = 64 * 1024;
inline constexpr std::size_t kMostCovered = 8192;  // clients of one sum

// The zstd mode of the codec: "auto" (trial), "off", or a level 1..19 (without a trial, if the result is
// shorter).
struct ZstdMode {
  enum class Kind : std::uint8_t { kAuto, kOff, kLevel } kind = Kind::kAuto;
  int level = 1;
};
Result<ZstdMode> parse_zstd_mode(std::string_view text);

// The parameters of a run that both ends of a connection know.
struct CodecContext {
  std::uint64_t seed = 0;     // seed of the run, for the draw keys of seeded payloads
  std::uint32_t dim = 0;      // d, the length of models
  std::uint32_t clients = 0;  // n
  Compressor compressor{};    // uplink
  ZstdMode zstd{};
  std::optional<Compressor> compressor_down{};  // set if the algorithm compresses broadcasts
  std::uint32_t max_dim = 0;                    // the longest vector in a message; 0 means dim
  bool asynchronous = false;                    // see draw_number()

  std::uint32_t longest() const { return max_dim != 0 ? max_dim : dim; }
};

// A message ready to write: prefix, header, then payload sections. Some sections view the sender's buffers.
struct Encoded {
  std::array<std::byte, kPrefixBytes> prefix;
  std::string header;
  std::vector<std::span<const std::byte>> sections;
  std::uint64_t bytes = 0;  // size of the whole message
};

// The encoded parts of one Downlink, shared by the requests of all clients. Owns the sections that do not
// view the downlink's buffers; keep it alive until the writes are done.
template <class Real>
class EncodedBody;

template <class Real>
class Codec {
 public:
  explicit Codec(CodecContext context);
  ~Codec();
  const CodecContext& context() const;

  std::shared_ptr<const EncodedBody<Real>> encode_body(const Downlink<Real>& body);
  // Encodes a request. `body` and `resync` may be null as in Request; `request`'s own pointers are ignored.
  // `have_bytes` is the number of payload bytes of the reply that have already arrived
  // (proto/wire/reply_tail.h). `same_body` replaces the body for a relay that already has it.
  Encoded encode(const Request<Real>& request, const EncodedBody<Real>* body, const EncodedBody<Real>* resync,
                 std::uint64_t have_bytes = 0, bool same_body = false) const;
  // Return sizes only, for transports that send nothing. body_bytes() returns the bytes that a body or resync
  // adds to a request; it compresses only large bodies. request_bytes() returns encode(request, body,
  // resync).bytes from these sizes; 0 means null.
  std::uint64_t body_bytes(const Downlink<Real>& body);
  static std::uint64_t request_bytes(std::uint64_t body, std::uint64_t resync);
  // Encodes an uplink. The sections view its buffers and this codec's work space, until the next encode of an
  // uplink. `covers` lists the clients whose sum the uplink is.
  const Encoded& encode(const UplinkView<Real>& uplink, std::span<const ClientId> covers = {});
  // Frees large work space after the last uplink was written. Otherwise the next encode() frees it.
  void release_uplink();
  // Returns encode(uplink).bytes. Takes only arithmetic, unless a section has kZstdMinBytes or more.
  std::uint64_t encoded_bytes(const UplinkView<Real>& uplink);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Receives one message after the other into the same buffers. prepare() checks every limit and says where the
// payload bytes go. finish() verifies the checksum, unpacks and validates before it returns anything.
template <class Real>
class RequestSlot {
 public:
  explicit RequestSlot(const CodecContext& context);
  ~RequestSlot();
  // Returns where to read payload_len bytes, in order. An error allocates nothing beyond the limits of the
  // context.
  Result<std::span<const std::span<std::byte>>> prepare(const Prefix& prefix,
                                                        std::span<const std::byte> header);
  // Returns the request; its body and resync view this slot until the next prepare().
  Result<Request<Real>> finish();
  // Returns how many bytes of the reply the server has, as the last prepared message says.
  std::uint64_t have_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

template <class Real>
class UplinkSlot {
 public:
  // `keeps_frames` enables frame().
  explicit UplinkSlot(const CodecContext& context, bool keeps_frames = false);
  ~UplinkSlot();
  Result<std::span<const std::span<std::byte>>> prepare(const Prefix& prefix,
                                                        std::span<const std::byte> header);
  // Prepares a message that is the dense sum of several clients' uplinks: see covers(). Pass the first of
  // these clients to finish().
  Result<std::span<const std::span<std::byte>>> prepare_sum(const Prefix& prefix,
                                                            std::span<const std::byte> header);
  // Returns the clients of the last prepared message, ascending: two or more for a sum, none for a single
  // uplink. The view is valid until the next prepare.
  std::span<const ClientId> covers() const;
  // Returns the uplink. Fails if the header names another client than `client`. The uplink views this slot
  // until the next prepare(). `draws` caches the draws that all clients' uplinks share (PermK); if null, the
  // slot uses its own cache.
  Result<UplinkView<Real>> finish(ClientId client, BlockMemo* draws = nullptr);
  // Returns the last message of finish() as received, except that its channel is 0. The views live until
  // release() or the next prepare. Empty if the compressed bytes of a long vector were longer than half the
  // vector, because then only the vector was kept.
  std::span<const std::span<const std::byte>> frame() const;
  // Frees large memory that only frame() needs. The uplink stays.
  void release();
  // Return the request id and the header of the last prepared message.
  std::uint64_t request_id() const;
  UplinkHeader announced() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns the largest payload that a correct peer can send in this context: the limit for read_prefix().
std::uint64_t max_payload_bytes(const CodecContext& context, std::size_t real_bytes);

}  // namespace gradwire
