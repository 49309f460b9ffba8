// Unauthenticated connections, and the choice of one to close if there is no room for another. Pure: no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace gradwire {

// Returns the origin of a peer (ADDRESS:PORT): its address, or the network (first half) of an IPv6 address.
std::string origin_of(const std::string& peer);

class UnauthenticatedPeers {
 public:
  // Adds a connection. `id` must grow with each call.
  void add(std::uint64_t id, const std::string& peer);
  void remove(std::uint64_t id);  // does nothing if `id` is unknown
  bool empty() const { return origins_.empty(); }
  std::size_t size() const { return origins_.size(); }

  // Returns the oldest connection of the origin with the most connections, so a flood displaces itself first.
  // REQUIRES: not empty.
  std::uint64_t eviction_candidate() const;
  // Returns the oldest connection of an origin, or nullopt if it has none.
  std::optional<std::uint64_t> first_from(const std::string& origin) const;
  // Returns the origin with the most connections.
  const std::string& largest_origin() const { return by_count_.rbegin()->second; }

 private:
  std::map<std::uint64_t, std::string> origins_;
  std::map<std::string, std::set<std::uint64_t>> from_;
  std::set<std::pair<std::size_t, std::string>> by_count_;  // (number of connections, origin)
};

// Time after which a peer may retry if its origin had too many connections.
inline constexpr std::uint32_t kOriginRetryMs = 1000;

// A limit on simultaneous connections from each origin.
class OriginLimit {
 public:
  explicit OriginLimit(std::size_t most) : most_(most) {}  // 0 means no limit

  // Counts a connection. Returns true if its origin has too many now.
  bool add(const std::string& origin) { return most_ > 0 && ++open_[origin] > most_; }
  // Removes a connection from the count.
  void remove(const std::string& origin);

 private:
  std::size_t most_;
  std::map<std::string, std::size_t> open_;
};

}  // namespace gradwire
