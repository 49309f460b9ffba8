// Messages <-> bytes. Envelopes and uplinks become a small protobuf header and raw payload sections, which
// stay where the algorithm put them (scatter-gather). The receiver reads plain sections straight into the
// slot's vectors. Lossless. No I/O.
//
// A part has up to two sections: its indices (bit-packed at ceil(log2 d) bits, or a d-bit bitmap when that is
// smaller; none when seeded or a range) and its values (plain little-endian reals, or as their packing says:
// docs/wire.md). A payload with a second summand becomes two parts, the first marked as continued. A section
// of kZstdMinBytes or more is zstd-compressed when a trial on its first kZstdTrialBytes gains 5 %.
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

// zstd of the codec: "auto" (trial), "off", or a level 1..19 (always, where it gains anything).
struct ZstdMode {
  enum class Kind : std::uint8_t { kAuto, kOff, kLevel } kind = Kind::kAuto;
  int level = 1;
};
Result<ZstdMode> parse_zstd_mode(std::string_view text);

// What both ends of a connection know.
struct CodecContext {
  std::uint64_t seed = 0;     // of the run: draw keys of seeded payloads
  std::uint32_t dim = 0;      // d, of models
  std::uint32_t clients = 0;  // n
  Compressor compressor{};    // uplink
  ZstdMode zstd{};
  std::optional<Compressor> compressor_down{};  // of algorithms that compress what they broadcast
  std::uint32_t max_dim = 0;                    // no vector of a message is longer; 0: dim
  bool asynchronous = false;                    // the algorithm: draw_number()

  std::uint32_t longest() const { return max_dim != 0 ? max_dim : dim; }
};

// A message ready to be written: prefix, header, then the payload sections, some of which view the sender's
// buffers.
struct Encoded {
  std::array<std::byte, kPrefixBytes> prefix;
  std::string header;
  std::vector<std::span<const std::byte>> sections;
  std::uint64_t bytes = 0;  // of the whole message
};

// The encoded parts of one Downlink, shared by the requests of all clients. Encoded sections that do not
// view the downlink's own buffers are owned here; keep it alive until the writes are done.
template <class Real>
class EncodedBody;

template <class Real>
class Codec {
 public:
  explicit Codec(CodecContext context);
  ~Codec();
  const CodecContext& context() const;

  std::shared_ptr<const EncodedBody<Real>> encode_body(const Downlink<Real>& body);
  // body and resync may be null as in Request; encode() ignores `request`'s own pointers. `have_bytes`:
  // bytes of the reply's payload that have arrived already (proto/wire/reply_tail.h). `same_body`: sent in
  // place of a body to a relay that already has the body.
  Encoded encode(const Request<Real>& request, const EncodedBody<Real>* body, const EncodedBody<Real>* resync,
                 std::uint64_t have_bytes = 0, bool same_body = false) const;
  // The same as sizes alone, for transports that send nothing: the bytes that a body (or resync) adds to an
  // request, and encode(request, body, resync).bytes from these sizes (0: null). Compresses only large
  // bodies to find out.
  std::uint64_t body_bytes(const Downlink<Real>& body);
  static std::uint64_t request_bytes(std::uint64_t body, std::uint64_t resync);
  // The sections view uplink's buffers and this codec's own work space: valid until the next encode of an
  // uplink.
  // `covers`: it is the sum of the uplinks of these clients.
  const Encoded& encode(const UplinkView<Real>& uplink, std::span<const ClientId> covers = {});
  // Called when the last uplink was written: frees large work space before the next encode would.
  void release_uplink();
  // encode(uplink).bytes; does only the work that the figure needs (nothing but arithmetic below
  // kZstdMinBytes).
  std::uint64_t encoded_bytes(const UplinkView<Real>& uplink);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Receives one message after the other into buffers that are kept. prepare() checks every limit and says
// where the payload bytes must go; finish() checks the checksum, unpacks and validates before it returns
// anything.
template <class Real>
class RequestSlot {
 public:
  explicit RequestSlot(const CodecContext& context);
  ~RequestSlot();
  // Where to read payload_len bytes, in order. Error: nothing was allocated beyond the limits of the context.
  Result<std::span<const std::span<std::byte>>> prepare(const Prefix& prefix,
                                                        std::span<const std::byte> header);
  // The request; its body and resync view this slot until the next prepare().
  Result<Request<Real>> finish();
  std::uint64_t have_bytes() const;  // of the message prepared last

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

template <class Real>
class UplinkSlot {
 public:
  // keeps_frames: for frame().
  explicit UplinkSlot(const CodecContext& context, bool keeps_frames = false);
  ~UplinkSlot();
  Result<std::span<const std::span<std::byte>>> prepare(const Prefix& prefix,
                                                        std::span<const std::byte> header);
  // The same for the sum of the uplinks of the clients covers(). The sum is dense; finish() takes its first
  // client.
  Result<std::span<const std::span<std::byte>>> prepare_sum(const Prefix& prefix,
                                                            std::span<const std::byte> header);
  // The clients of the message prepared last, ascending: two or more for a sum, none for the uplink of one
  // client. The view is valid until the next prepare.
  std::span<const ClientId> covers() const;
  // The uplink, as sent by `client` (another number in the header is an error); it views this slot until the
  // next prepare(). `draws` caches the draws that the uplinks of all clients share (PermK); null: the slot
  // uses its own cache.
  Result<UplinkView<Real>> finish(ClientId client, BlockMemo* draws = nullptr);
  // The message that finish() returned last, as it came, but for its channel, which is 0. The views live
  // until release() or the next prepare. Empty: a long vector came compressed by less than half, so that only
  // the vector was kept.
  std::span<const std::span<const std::byte>> frame() const;
  // Frees large memory that only frame() needs. The uplink stays.
  void release();
  std::uint64_t request_id() const;  // of the message prepared last
  // What the header of the message prepared last says.
  UplinkHeader announced() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The largest payload an honest peer can send in this context; the limit to give read_prefix.
std::uint64_t max_payload_bytes(const CodecContext& context, std::size_t real_bytes);

}  // namespace gradwire
