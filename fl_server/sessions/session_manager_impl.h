// The implementation of SessionManager. Only its source files include this header.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "fl_server/sessions/client_sessions.h"
#include "fl_server/sessions/repeated_lines.h"
#include "fl_server/sessions/session.h"
#include "fl_server/sessions/session_manager.h"
#include "fl_server/sessions/unauthenticated_peers.h"

namespace gradwire {

struct SessionManager::Impl final : SessionOwner, SocketLayerHandler {
  Impl(SessionManagerOptions o, std::unique_ptr<SocketLayer> n);
  ~Impl() override;

  bool wants(const std::string& peer) override;
  void on_accepted(std::unique_ptr<Socket> socket) override;
  void on_no_descriptors() override;
  void on_tick() override;
  void on_stop() override;

  SteadyTime now() const { return sockets->now(); }
  void log(const LogLine& line) const {
    if (options.log) options.log(line);
  }
  std::string name(ClientId client) const {
    return "client " + std::to_string(client) + " '" + table.info(client).name + "'";
  }
  std::uint32_t needed() const { return options.start_with > 0 ? options.start_with : table.size(); }
  // Returns why the run cannot begin although needed() clients have joined, or "".
  std::string lacking() const {
    const std::uint32_t joined = table.joined_count();
    return options.lacks && joined >= needed() && joined < table.size() ? options.lacks(table) : "";
  }
  bool asks_sums() const { return asked_sums() != Normalize::kNone; }
  // Computes the map from the sums of all clients, and sends it. Throws DataError.
  void send_scaling();
  void serve_by(Session& session, ClientId client);
  std::string missing() const;
  void compare_kernels(ClientId client) const;
  void set_connected(ClientId client, bool is);
  bool is_copy(const Session& session, const Session* other) const;
  bool is_late(const Session& session, const Session* other) const;
  Session& add_session();
  std::size_t most_sockets() const;
  void reject_unauthenticated();
  // Refuses a connection whose origin is banned or has too many connections.
  void admit_connection(Session& session);
  PeerIdentity identity(const Session& session, const std::string& claimed_name) const;

  Result<ClientId> on_hello(Session& session, const std::string& client_name,
                            std::optional<std::uint32_t> part_index,
                            std::optional<std::uint32_t> part_count) override;
  std::string welcome(ClientId client, bool chunks) override;
  std::uint32_t on_violation(const Session& session) override;
  std::uint32_t banned(const Session& session, const std::string& name) const override;
  Authenticator* authenticator() override { return options.authenticator; }
  ServerMetrics& server_metrics() override { return counts.server_metrics; }
  Normalize asked_sums() const override {
    return needs_sums(options.normalize) && normalization == nullptr ? options.normalize : Normalize::kNone;
  }
  Status check(const Session& session, const ClientInfo& info) const override;
  Status check(const Abilities& abilities) const override {
    return options.check_abilities ? options.check_abilities(abilities) : Unit{};
  }
  Status on_sums(Session& session, const ClientInfo& info, ClientSums features) override;
  Status on_join(Session& session, ClientInfo info) override;
  SessionEvents* round_events() override { return events; }
  bool is_served_by(const Session& relay, ClientId client) const override;
  void on_shutdown_confirmed(Session& session) override { pending_shutdowns.erase(*session.client()); }
  void on_closed(Session& session, const std::string& why) override;
  std::string relay_welcome(const Session& relay) override;
  std::uint64_t max_payload() const override { return longest_payload; }
  std::uint64_t most_for_relay() const override;
  Channel on_channel(Session& relay, Connection& multiplexer, std::uint32_t channel) override;
  void on_shut(Session& session) override;

  SessionManagerOptions options;
  ClientTable table;
  ServerMetrics own_metrics;  // used if the options name no metrics
  ConnectionCounts counts;
  const std::unique_ptr<SocketLayer> sockets;  // declared before sessions, so it is destroyed after them
  std::string start;                           // the Start frame; empty until the run begins
  std::uint64_t longest_payload = 0;           // max_payload()
  // The samples of which a client has sent the sums.
  struct Summed {
    ClientInfo info;
    ClientSums sums;  // empty once the map is computed
  };
  std::map<ClientId, Summed> summed;                   // by number; of this process
  std::shared_ptr<const Normalization> normalization;  // null until the map is computed
  SessionEvents* events = nullptr;                     // null before and after the run
  bool stopped = false, ended = false, warned_of_descriptors = false, takes_sums = false;

  std::map<std::uint64_t, std::unique_ptr<Session>> sessions;  // in order of arrival
  std::uint64_t sessions_so_far = 0;
  struct Relay {
    ChannelLimits channels;
    bool adds = false;  // it adds up replies
  };
  std::map<std::uint64_t, Relay> relays;  // by session id
  PeerLimits limits;
  OriginLimit open_from;  // sockets by origin
  // Includes relays without clients, and refused peers that still read the reason.
  UnauthenticatedPeers unauthenticated;
  ClientSessions clients;
  RepeatedLines repeated;  // about peers that serve no client
  struct Loss {
    std::chrono::system_clock::time_point at;
    std::string why;
  };
  std::map<ClientId, Loss> losses;  // of clients that are not connected
  // By client: its last message, until the client confirms it. Sent again if the client reconnects.
  std::map<ClientId, Outgoing> pending_shutdowns;

  struct PostStop {
    Impl& to;
    void operator()() const;
  };
  std::optional<std::stop_callback<PostStop>> stop_requested, abandon_requested;
};

}  // namespace gradwire
