// How often something may happen. Pure: fed with the time, no I/O.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "fl_server/net/socket_layer.h"

namespace gradwire {

struct Rate {
  double per_second = 0;  // 0: no limit
  double burst = 0;       // at once, after a time without any
};

// A bucket that a second fills with `per_second` tokens, up to `burst`.
class RateLimit {
 public:
  explicit RateLimit(const Rate& rate = {}) : rate_(rate), tokens_(rate.burst) {}

  // Takes a token. False if there is none.
  bool take(SteadyTime now) {
    if (rate_.per_second <= 0) return true;
    tokens_ = tokens_at(now);
    filled_ = std::max(now, filled_);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  // Returns true if nothing was taken for so long that the limit is as new.
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

// Whether another peer may begin a handshake, which costs the server far more than the peer. A crowd from one
// address uses up the share of that address. A crowd from many addresses uses up the share of all that are
// not known.
class HandshakeLimit {
 public:
  static constexpr std::size_t kMost = 4096;  // addresses that it remembers

  explicit HandshakeLimit(const HandshakeRates& rates) : rates_(rates), in_all_(rates.in_all) {}

  // `is_known`: clients of the run came from that address; the limit of all does not count for it.
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
