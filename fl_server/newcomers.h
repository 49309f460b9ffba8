// Connections whose peers have not said who they are, and who goes when there is no room for another. Pure:
// no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace gradwire {

// Where a peer (ADDRESS:PORT) comes from: its address, or of IPv6 the first half of it, which is one network.
std::string origin_of(const std::string& peer);

class Newcomers {
 public:
  // `id` grows from one newcomer to the next.
  void add(std::uint64_t id, const std::string& peer);
  void remove(std::uint64_t id);  // nothing where it is none
  bool empty() const { return origins_.empty(); }
  std::size_t size() const { return origins_.size(); }

  // Of the origin of most of them the oldest: a crowd makes room for itself first. REQUIRES: there are some.
  std::uint64_t first_to_go() const;
  // Of most of them.
  const std::string& crowded_origin() const { return crowds_.rbegin()->second; }

 private:
  std::map<std::uint64_t, std::string> origins_;
  std::map<std::string, std::set<std::uint64_t>> from_;
  std::set<std::pair<std::size_t, std::string>> crowds_;  // how many, from where
};

}  // namespace gradwire
