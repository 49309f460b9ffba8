// The session that serves each client, and the one that may replace it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "algorithms/core/message.h"

namespace gradwire {

class Session;

class ClientSessions {
 public:
  explicit ClientSessions(std::uint32_t clients)
      : current_(clients, nullptr), candidates_(clients, nullptr), connected_(clients, false) {}

  Session* current(ClientId client) const { return current_[client]; }       // null if there is none
  Session* candidate(ClientId client) const { return candidates_[client]; }  // null if there is none
  const std::vector<Session*>& all() const { return current_; }
  std::uint64_t connected_count() const { return connected_count_; }

  // Adds a session that sent a Hello. It serves the client if no other one does; otherwise it becomes the
  // candidate. A Hello replaces no session, because it may come from a connection that the client has left.
  // Returns the former candidate, which must be closed, or null.
  Session* add(ClientId client, Session& session) {
    if (current_[client] != nullptr) return std::exchange(candidates_[client], &session);
    current_[client] = &session;
    return nullptr;
  }
  // Lets the session serve the client from now on. Returns the former one, which must be closed, or null.
  Session* promote(ClientId client, Session& session) {
    if (candidates_[client] == &session) candidates_[client] = nullptr;
    Session* const former = std::exchange(current_[client], &session);
    if (former == &session) return nullptr;
    if (former != nullptr) set_connected(client, false);
    return former;
  }
  // Removes a closed session. Returns whether it served the client.
  bool remove(ClientId client, const Session& session) {
    if (candidates_[client] == &session) candidates_[client] = nullptr;
    if (current_[client] != &session) return false;
    current_[client] = nullptr;
    set_connected(client, false);
    return true;
  }
  // Lets the candidate, if any, serve a client that no session serves. Returns whether there was one.
  bool promote_candidate(ClientId client) {
    current_[client] = std::exchange(candidates_[client], nullptr);
    return current_[client] != nullptr;
  }
  // Counts a client as connected. It is connected from its Join on.
  void set_connected(ClientId client, bool is) {
    connected_count_ += static_cast<std::uint64_t>(is) - static_cast<std::uint64_t>(connected_[client]);
    connected_[client] = is;
  }

 private:
  std::vector<Session*> current_;     // by client
  std::vector<Session*> candidates_;  // by client; becomes the current one when it joins
  std::vector<bool> connected_;       // by client
  std::uint64_t connected_count_ = 0;
};

}  // namespace gradwire
