// The session of one peer: the handshake (Hello, Join), then replies. A state machine that is fed with
// frames.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/data/normalize.h"
#include "fl_server/net/connection.h"
#include "fl_server/sessions/authenticator.h"
#include "fl_server/sessions/client_table.h"
#include "fl_server/sessions/multiplexer.h"

namespace gradwire {

namespace wire {
class Join;
}

class Session;
class SessionEvents;
struct Introduction;  // the claims of a peer

// The interface of a session to its session manager.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  // Returns an error if a client with these abilities cannot take part in the run.
  virtual Status check(const Abilities&) const { return Unit{}; }
  // Returns the number of a client that sent a Hello. The session then sends welcome().
  virtual Result<ClientId> on_hello(Session& session, const std::string& name,
                                    std::optional<std::uint32_t> part_index,
                                    std::optional<std::uint32_t> part_count) = 0;
  // Returns the whole Welcome frame. With `chunks`, the client may send replies in chunks.
  virtual std::string welcome(ClientId client, bool chunks) = 0;
  virtual Authenticator* authenticator() { return nullptr; }  // null if peers need not authenticate
  virtual ServerMetrics& server_metrics() = 0;
  // Reports that the peer broke the protocol. Returns the length of its ban in milliseconds, or 0 if it is
  // not banned.
  virtual std::uint32_t on_violation(const Session& session) = 0;
  // Returns the remaining ban of a peer that claims `name` in milliseconds, or 0.
  virtual std::uint32_t banned(const Session& session, const std::string& name) const = 0;
  // Returns the whole frame that answers a relay.
  virtual std::string relay_welcome(const Session& relay) = 0;
  virtual std::uint64_t max_payload() const = 0;     // bytes; 0 before the run begins
  virtual std::uint64_t most_for_relay() const = 0;  // bytes that may wait for a relay
  // Opens a channel for a new client of the relay. Returns no link if there are too many.
  virtual Channel on_channel(Session& relay, Connection& multiplexer, std::uint32_t channel) = 0;
  // Returns the kind of problem.normalize whose sums clients must send before they join, or kNone.
  virtual Normalize asked_sums() const { return Normalize::kNone; }
  // Returns an error if no run is possible with the data of the session's client.
  virtual Status check(const Session&, const ClientInfo&) const { return Unit{}; }
  virtual Status on_sums(Session&, const ClientInfo&, ClientSums) { return Unit{}; }
  virtual Status on_join(Session& session, ClientInfo info) = 0;
  virtual SessionEvents* round_events() = 0;  // null before and after the run
  // Returns whether the client is in the run through that relay.
  virtual bool is_served_by(const Session& relay, ClientId client) const = 0;
  // Reports that the client confirmed the last message.
  virtual void on_shutdown_confirmed(Session& session) = 0;
  virtual void on_closed(Session& session, const std::string& why) = 0;
  virtual void on_shut(Session& session) = 0;  // the session may be destroyed
};

class Session final : public FrameHandler {
 public:
  enum class SessionState : std::uint8_t { kHello, kProof, kData, kSummed, kJoined, kRounds, kRelay };

  // `id` is the owner's name for the session.
  Session(std::uint64_t id, SocketLayer& sockets, const WireTimes& times, SessionOwner& owner);
  ~Session() override;
  // Sets the link of the session. Must be called once, before anything else.
  Connection& speak(std::unique_ptr<Connection> connection);
  MuxChannel& speak(std::unique_ptr<MuxChannel> channel, Session& relay);

  std::uint64_t id() const { return id_; }
  FrameLink& link() { return *link_; }
  const FrameLink& link() const { return *link_; }
  SessionState state() const { return state_; }
  const std::string& proven_name() const { return proven_name_; }  // empty before authentication
  std::optional<ClientId> client() const { return client_; }
  // Returns the name in its Hello or Relay, for logs. It may be false, and is empty before that message.
  const std::string& claimed_name() const { return claimed_name_; }
  // Returns whether the session was refused because its client, name or data do not fit the run.
  bool unwanted() const { return unwanted_; }
  // Returns true if both Hellos name the same process. ordinal() numbers the connections of that process.
  bool same_process(const Session& other) const { return process_ != 0 && process_ == other.process_; }
  std::uint32_t ordinal() const { return ordinal_; }
  // Closes the session because another connection now serves the client.
  void close_replaced(const std::string& why, bool fatal);

  // Sends the map of problem.normalize to a client that has sent its sums; its Join follows. A client that
  // has not must reconnect.
  void scale(const Normalization& map);
  // Sends Start; rounds follow.
  void begin(const std::string& start, std::uint64_t max_payload);
  // Tells a relay the limits of its clients.
  void tell_relay();
  // Returns true for a relay that adds up replies.
  bool adds() const { return adds_; }
  // Returns true for a relay without channels.
  bool has_no_clients() const { return multiplexer_ && multiplexer_->empty(); }
  bool is_channel() const { return channel_ != nullptr; }
  // Returns the relay of a channel. Null if this is not a channel or the relay is lost.
  Session* relay() const { return channel_ != nullptr && !channel_->is_lost() ? relay_ : nullptr; }
  // Returns true if this is a channel of that relay.
  bool is_client_of(const Session& relay) const { return relay_ == &relay && !channel_->is_lost(); }
  void check_time(SteadyTime now);
  // Sends the reason to the peer, counts it, and closes the link.
  void refuse(Ending ending, const std::string& message, bool fatal, std::uint32_t retry_after_ms = 0);
  std::uint64_t bytes_waiting() const { return connection_ != nullptr ? connection_->bytes_waiting() : 0; }

  Result<std::span<const std::span<std::byte>>> on_header(const Prefix& prefix,
                                                          std::span<const std::byte> header) override;
  Status on_frame() override;
  std::uint32_t on_misbehaviour() override { return owner_.on_violation(*this); }
  void on_closed(const std::string& why) override;
  void on_shut() override;

 private:
  // Refuses a banned peer. Returns false if it is not banned.
  bool ban(const std::string& name);
  Status control(FrameType type, std::span<const std::byte> header);
  Status hello(std::span<const std::byte> header);
  Status greet();
  Status challenge(const std::string& name, const std::string& public_key);
  Status proof(std::span<const std::byte> header);
  Status join(std::span<const std::byte> header);
  Status take_sums_of(const wire::Join& join);
  Status relay(std::span<const std::byte> header);
  void carry();
  // Refuses a peer with another protocol version. Returns false if the version is right.
  bool refuse_version(const std::string& peer, std::uint32_t version);
  Status error(std::span<const std::byte> header);
  void tell_broken_reply();
  // Counts a reply that cannot be used.
  template <class T>
  Result<T> counted(Result<T> result);

  const std::uint64_t id_;
  SocketLayer& sockets_;
  const WireTimes& times_;
  SessionOwner& owner_;
  std::unique_ptr<FrameLink> link_;
  Connection* connection_ = nullptr;  // link_, if that is a socket
  MuxChannel* channel_ = nullptr;     // link_, if that is a channel
  // The relay of this channel, until channel_ is lost; null if this is not a channel.
  Session* relay_ = nullptr;
  std::unique_ptr<Multiplexer> multiplexer_;  // only in a session of a relay
  bool in_channel_ = false;                   // the arriving frame is for one of its channels
  SessionState state_ = SessionState::kHello;
  IdleTimer idle_timer_;  // time since state_ began
  std::optional<ClientId> client_;
  ClientInfo info_;           // from its Hello
  bool awaits_sums_ = false;  // its Welcome asked for sums
  struct Summed {
    ClientInfo info;
    ClientSums sums;
  };
  std::unique_ptr<Summed> summed_;              // while its sums arrive
  std::unique_ptr<Introduction> introduction_;  // until the peer is accepted
  bool unwanted_ = false;                       // refused because of what it said about its client
  std::string claimed_name_;
  std::string proven_name_;  // empty before authentication
  std::uint64_t process_ = 0;
  std::uint32_t ordinal_ = 0;
  std::uint64_t reply_bytes_ = 0;  // size of the arriving reply or sum of replies, else 0
  bool in_chunk_ = false;          // a chunk of a reply is arriving
  bool adds_ = false;
  bool takes_chunks_ = false;   // the Welcome of this client allowed chunks
  bool passes_chunks_ = false;  // this relay passes chunks on
};

}  // namespace gradwire
