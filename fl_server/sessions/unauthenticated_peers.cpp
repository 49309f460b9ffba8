#include "fl_server/sessions/unauthenticated_peers.h"

#include <arpa/inet.h>
#include <array>
#include <netinet/in.h>

namespace gradwire {
namespace {

constexpr std::size_t kNetworkBytes = 8;  // the first half of an IPv6 address

}  // namespace

std::string origin_of(const std::string& peer) {
  const std::string host = peer.substr(0, peer.rfind(':'));
  if (!host.starts_with('[')) return host;
  in6_addr address{};
  const std::string bare = host.substr(1, host.find_first_of("]%") - 1);
  if (::inet_pton(AF_INET6, bare.c_str(), &address) != 1 || IN6_IS_ADDR_V4MAPPED(&address)) return bare;
  for (std::size_t k = kNetworkBytes; k < sizeof address.s6_addr; ++k) address.s6_addr[k] = 0;
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, &address, text.data(), text.size());
  return std::string(text.data()) + "/64";
}

void UnauthenticatedPeers::add(std::uint64_t id, const std::string& peer) {
  const auto [place, is_new] = origins_.emplace(id, origin_of(peer));
  if (!is_new) return;
  std::set<std::uint64_t>& connections = from_[place->second];
  by_count_.erase({connections.size(), place->second});
  connections.insert(id);
  by_count_.emplace(connections.size(), place->second);
}

void UnauthenticatedPeers::remove(std::uint64_t id) {
  const auto found = origins_.find(id);
  if (found == origins_.end()) return;
  const std::string origin = std::move(found->second);
  origins_.erase(found);
  std::set<std::uint64_t>& connections = from_[origin];
  by_count_.erase({connections.size(), origin});
  connections.erase(id);
  if (connections.empty()) {
    from_.erase(origin);
  } else {
    by_count_.emplace(connections.size(), origin);
  }
}

std::optional<std::uint64_t> UnauthenticatedPeers::first_from(const std::string& origin) const {
  const auto found = from_.find(origin);
  return found == from_.end() ? std::nullopt : std::optional(*found->second.begin());
}

std::uint64_t UnauthenticatedPeers::eviction_candidate() const { return *from_.at(largest_origin()).begin(); }

void OriginLimit::remove(const std::string& origin) {
  const auto found = open_.find(origin);
  if (found != open_.end() && --found->second == 0) open_.erase(found);
}

}  // namespace gradwire
