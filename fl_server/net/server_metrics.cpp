#include "fl_server/net/server_metrics.h"

#include <algorithm>

namespace gradwire {

void TimeHistogram::observe(double seconds) {
  if (!(seconds > 0)) seconds = 0;
  const auto bucket = std::lower_bound(kLimits.begin(), kLimits.end(), seconds) - kLimits.begin();
  counts_[static_cast<std::size_t>(bucket)].add();
  nanoseconds_.add(static_cast<std::uint64_t>(std::min(seconds * 1e9, 1e18)));
}

const char* name_of(Ending ending) {
  switch (ending) {
    case Ending::kByPeer: return "by_peer";
    case Ending::kNoDescriptors: return "turned_away";
    case Ending::kEvicted: return "crowded";
    case Ending::kFromOneOrigin: return "from_one_origin";
    case Ending::kBanned: return "kept_out";
    case Ending::kNotGradwire: return "foreign";
    case Ending::kNoTls: return "no_tls";
    case Ending::kTooLate: return "too_late";
    case Ending::kWrongVersion: return "wrong_version";
    case Ending::kNotAdmitted: return "not_admitted";
    case Ending::kRevoked: return "revoked";
    case Ending::kUnwanted: return "unwanted";
    case Ending::kReplaced: return "replaced";
    case Ending::kBadMessage: return "bad_message";
    case Ending::kTooSlow: return "too_slow";
    case Ending::kSilent: return "silent";
    case Ending::kCount: break;
  }
  return "unknown";
}

const char* name_of(Rejection rejection) {
  switch (rejection) {
    case Rejection::kLate: return "late";
    case Rejection::kRepeated: return "repeated";
    case Rejection::kMalformed: return "malformed";
    case Rejection::kNotFinite: return "not_finite";
    case Rejection::kNorm: return "norm";
    case Rejection::kNotUsed: return "not_used";
    case Rejection::kCount: break;
  }
  return "unknown";
}

const char* name_of(FrameType type) {
  switch (type) {
    case FrameType::kHello: return "Hello";
    case FrameType::kWelcome: return "Welcome";
    case FrameType::kJoin: return "Join";
    case FrameType::kStart: return "Start";
    case FrameType::kRound: return "Round";
    case FrameType::kReply: return "Reply";
    case FrameType::kError: return "Error";
    case FrameType::kHeartbeat: return "Heartbeat";
    case FrameType::kReceived: return "Received";
    case FrameType::kRelay: return "Relay";
    case FrameType::kChunk: return "Piece";
    case FrameType::kChallenge: return "Challenge";
    case FrameType::kProof: return "Proof";
  }
  return "unknown";
}

void FrameCounts::add_all(std::span<const std::byte> heads) {
  while (heads.size() >= kPrefixBytes) {
    const auto prefix =
        read_prefix(heads.first<kPrefixBytes>(), std::numeric_limits<std::uint64_t>::max(), true);
    if (!prefix) return;
    const std::uint64_t bytes = kPrefixBytes + prefix->header_len + prefix->payload_len;
    add(prefix->type, bytes);
    heads = heads.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, heads.size())));
  }
}

}  // namespace gradwire
