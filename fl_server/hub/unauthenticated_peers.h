// Connections whose peers have not said who they are, and which of them to close when there is no room for
// another. Pure: no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace gradwire {

// Where a peer (ADDRESS:PORT) comes from: its address, or the first half of an IPv6 address, which is one
// network.
std::string origin_of(const std::string& peer);

class UnauthenticatedPeers {
 public:
  // `id` grows from one unauthenticated connection to the next.
  void add(std::uint64_t id, const std::string& peer);
  void remove(std::uint64_t id);  // does nothing if it is none
  bool empty() const { return origins_.empty(); }
  std::size_t size() const { return origins_.size(); }

  // The oldest from the origin that most of them have: a crowd makes room for itself first. REQUIRES: there
  // are some.
  std::uint64_t first_to_go() const;
  // The oldest from there; nothing: there is none.
  std::optional<std::uint64_t> first_from(const std::string& origin) const;
  // The origin that most of them have.
  const std::string& crowded_origin() const { return crowds_.rbegin()->second; }

 private:
  std::map<std::uint64_t, std::string> origins_;
  std::map<std::string, std::set<std::uint64_t>> from_;
  std::set<std::pair<std::size_t, std::string>> crowds_;  // how many, from where
};

// When peers that are refused because too many come from their origin may try again.
inline constexpr std::uint32_t kCrowdedRetryMs = 1000;

// A limit on the connections that are open at the same time from each origin.
class OriginLimit {
 public:
  explicit OriginLimit(std::size_t most) : most_(most) {}  // 0: no limit

  // Counts a connection. Returns true if its origin has too many now.
  bool add(const std::string& origin) { return most_ > 0 && ++open_[origin] > most_; }
  // Counts a connection out.
  void remove(const std::string& origin);

 private:
  std::size_t most_;
  std::map<std::string, std::size_t> open_;
};

}  // namespace gradwire
