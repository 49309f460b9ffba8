// A queue of clients that holds each at most once. Every change takes O(1) and allocates nothing after
// reset().
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/core/message.h"

namespace gradwire {

class ClientQueue {
 public:
  // Makes an empty queue for the clients 0, ..., n - 1.
  void reset(std::uint32_t n) {
    places_.assign(n + std::size_t{1}, {kNowhere, kNowhere}), places_[n] = {n, n};
  }
  bool empty() const { return places_.empty() || front() == end(); }
  // REQUIRES: not empty.
  ClientId front() const { return places_.back().next; }

  std::vector<ClientId> clients() const {
    std::vector<ClientId> all;
    for (ClientId c = places_.empty() ? 0 : front(); !places_.empty() && c != end(); c = places_[c].next)
      all.push_back(c);
    return all;
  }

  void to_back(ClientId client) {
    remove(client);
    const ClientId last = places_[end()].before;
    places_[client] = {last, end()};
    places_[last].next = client;
    places_[end()].before = client;
  }
  void remove(ClientId client) {
    QueueLink& place = places_[client];
    if (place.next == kNowhere) return;
    places_[place.before].next = place.next;
    places_[place.next].before = place.before;
    place = {kNowhere, kNowhere};
  }

 private:
  static constexpr ClientId kNowhere = UINT32_MAX;
  struct QueueLink {
    ClientId before, next;
  };
  ClientId end() const { return static_cast<ClientId>(places_.size() - 1); }

  std::vector<QueueLink> places_;  // by client; the last one closes the ring
};

}  // namespace gradwire
