// Rate limits. Pure: the caller passes the time, no I/O.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "fl_server/net/socket_layer.h"

namespace gradwire {

struct Rate {
  double per_second = 0;  // 0 means no limit
  double burst = 0;       // allowed at once after an idle time
};

// A token bucket: gains `per_second` tokens a second, up to `burst`.
class RateLimit {
 public:
  explicit RateLimit(const Rate& rate = {}) : rate_(rate), tokens_(rate.burst) {}

  // Takes a token. Returns false if there is none.
  bool take(SteadyTime now) {
    if (rate_.per_second <= 0) return true;
    tokens_ = tokens_at(now);
    filled_ = std::max(now, filled_);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  // Returns true if the bucket is full again.
  bool is_full(SteadyTime now) const { return tokens_at(now) >= rate_.burst; }

 private:
  double tokens_at(SteadyTime now) const {
    const double seconds = std::chrono::duration<double>(std::max(now, filled_) - filled_).count();
    return std::min(rate_.burst, tokens_ + seconds * rate_.per_second);
  }

  Rate rate_;
  double tokens_;
  SteadyTime filled_;
};

struct HandshakeRates {
  Rate from_address, in_all;
};

// A limit on new handshakes, which cost the server far more than the peer. A flood from one address uses up
// only the share of that address. A flood from many addresses uses up only the share of unknown addresses.
class HandshakeLimit {
 public:
  static constexpr std::size_t kMost = 4096;  // addresses with a bucket of their own

  explicit HandshakeLimit(const HandshakeRates& rates) : rates_(rates), in_all_(rates.in_all) {}

  // Takes a token for a handshake from `origin`. Known addresses, from which clients of the run came, do not
  // count against the total.
  bool take(const std::string& origin, bool is_known, SteadyTime now) {
    if (origins_.size() >= kMost && !origins_.contains(origin)) make_room(now);
    if (!origins_.try_emplace(origin, rates_.from_address).first->second.take(now)) return false;
    return is_known || in_all_.take(now);
  }
  std::size_t size() const { return origins_.size(); }

 private:
  void make_room(SteadyTime now) {
    std::erase_if(origins_, [now](const auto& entry) { return entry.second.is_full(now); });
    if (origins_.size() >= kMost) origins_.erase(origins_.begin());
  }

  const HandshakeRates rates_;
  RateLimit in_all_;
  std::map<std::string, RateLimit> origins_;
};

}  // namespace gradwire
