// One connection's way through the handshake: Hello, Join, then replies. A state machine fed with frames.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "fl_server/hub/authenticator.h"
#include "fl_server/hub/client_table.h"
#include "fl_server/hub/multiplexer.h"
#include "fl_server/net/connection.h"

namespace gradwire {

class Session;
struct Introduction;  // what a peer says of itself

// What sessions ask of their session manager.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  // The number of a client that says hello; its Welcome is sent by welcome().
  virtual Result<ClientId> on_hello(Session& session, const std::string& name,
                                    std::optional<std::uint32_t> part_index,
                                    std::optional<std::uint32_t> part_count) = 0;
  // A whole frame. `pieces`: the client may send replies in pieces.
  virtual std::string welcome(ClientId client, bool pieces) = 0;
  virtual Authenticator* authenticator() { return nullptr; }  // null: peers are believed
  virtual ServerMetrics& server_metrics() = 0;
  // What the server tells the session's peer, a relay: a whole frame.
  // A peer that misbehaved; returns for how many milliseconds it is banned from now on; 0: it is not.
  virtual std::uint32_t on_violation(const Session& session) = 0;
  // For how many milliseconds the peer that says it is `name` is still banned.
  virtual std::uint32_t banned(const Session& session, const std::string& name) const = 0;
  virtual std::string relay_welcome(const Session& relay) = 0;
  virtual std::uint64_t max_payload() const = 0;     // bytes; 0 before the run begins
  virtual std::uint64_t most_for_relay() const = 0;  // bytes that wait until a relay takes them
  // A client of the relay connects. No link: there are too many.
  virtual Channel on_channel(Session& relay, Connection& multiplexer, std::uint32_t channel) = 0;
  virtual Status on_join(Session& session, ClientInfo info) = 0;
  virtual Result<std::span<const std::span<std::byte>>> on_reply_header(
      Session& session, const Prefix& prefix, std::span<const std::byte> header) = 0;
  virtual Status on_reply(Session& session, std::uint64_t bytes) = 0;
  // A piece of a reply that is still to come.
  virtual Result<std::span<const std::span<std::byte>>> on_chunk_header(
      Session& session, const Prefix& prefix, std::span<const std::byte> header) = 0;
  virtual Status on_chunk(Session& session) = 0;
  // As of a reply, for a relay's sum of replies.
  virtual Result<std::span<const std::span<std::byte>>> on_sum_header(Session& relay, const Prefix& prefix,
                                                                      std::span<const std::byte> header) = 0;
  virtual Status on_sum(Session& relay, std::uint64_t bytes) = 0;
  // The client has confirmed the last message.
  virtual void on_heard(Session& session) = 0;
  // Before on_closed: the connection ended in the middle of a reply; so much of its payload has arrived.
  virtual void on_broken_reply(Session& session, std::uint64_t payload_bytes) = 0;
  virtual void on_closed(Session& session, const std::string& why) = 0;
  virtual void on_shut(Session& session) = 0;  // it may be destroyed
};

class Session final : public FrameHandler {
 public:
  enum class SessionState : std::uint8_t { kHello, kProof, kData, kJoined, kRounds, kRelay };

  // `id`: the owner's name for it.
  Session(std::uint64_t id, SocketLayer& sockets, const WireTimes& times, SessionOwner& owner);
  ~Session() override;
  // Sets the session's link; to be called once, before anything else.
  Connection& speak(std::unique_ptr<Connection> connection);
  MuxChannel& speak(std::unique_ptr<MuxChannel> channel, Session& relay);

  std::uint64_t id() const { return id_; }
  FrameLink& link() { return *link_; }
  const FrameLink& link() const { return *link_; }
  SessionState state() const { return state_; }
  const std::string& proven_name() const { return proven_name_; }  // empty: the peer has proven nothing
  std::optional<ClientId> client() const { return client_; }
  // Of its Hello or Relay, for a log; perhaps a lie. Empty: it has said none.
  const std::string& said_name() const { return said_name_; }
  // From the Hello: whether both are known to be of one process, and which connection of it this is.
  bool same_process(const Session& other) const { return process_ != 0 && process_ == other.process_; }
  std::uint32_t ordinal() const { return ordinal_; }
  // Another connection speaks for the client now.
  void give_way(const std::string& why, bool fatal);

  // The run has begun: Start, then rounds.
  void begin(const std::string& start, std::uint64_t max_payload);
  // Of a relay: tells it what its clients may send.
  void tell_relay();
  // Of a relay: it adds up replies where it may.
  bool adds() const { return adds_; }
  // Of a relay: it has no channels.
  bool carries_nobody() const { return multiplexer_ && multiplexer_->empty(); }
  bool is_channel() const { return channel_ != nullptr; }
  // The relay whose channel it is; null: it is no channel, or the relay is lost.
  Session* relay() const { return channel_ != nullptr && !channel_->is_lost() ? relay_ : nullptr; }
  // It is a channel of this relay.
  bool is_behind(const Session& relay) const { return relay_ == &relay && !channel_->is_lost(); }
  void check_time(SteadyTime now);
  // Tells the peer why, counts it, and closes the link.
  void refuse(Ending ending, const std::string& message, bool fatal, std::uint32_t retry_after_ms = 0);
  std::uint64_t bytes_waiting() const { return connection_ != nullptr ? connection_->bytes_waiting() : 0; }

  Result<std::span<const std::span<std::byte>>> on_header(const Prefix& prefix,
                                                          std::span<const std::byte> header) override;
  Status on_frame() override;
  std::uint32_t on_misbehaviour() override { return owner_.on_violation(*this); }
  void on_closed(const std::string& why) override;
  void on_shut() override;

 private:
  // Refuses a peer that is banned; false: it is not.
  bool ban(const std::string& name);
  Status control(FrameType type, std::span<const std::byte> header);
  Status hello(std::span<const std::byte> header);
  Status greet();
  Status challenge(const std::string& name, const std::string& public_key);
  Status proof(std::span<const std::byte> header);
  Status join(std::span<const std::byte> header);
  Status relay(std::span<const std::byte> header);
  void carry();
  // Refuses a peer of another version of the protocol; false: it is of ours.
  bool refuse_version(const std::string& peer, std::uint32_t version);
  Status error(std::span<const std::byte> header);
  void tell_broken_reply();

  const std::uint64_t id_;
  SocketLayer& sockets_;
  const WireTimes& times_;
  SessionOwner& owner_;
  std::unique_ptr<FrameLink> link_;
  Connection* connection_ = nullptr;  // link_, unless that is a channel
  MuxChannel* channel_ = nullptr;     // link_, if that is a channel
  Session* relay_ = nullptr;          // whose channel it is, until channel_ is lost; null: it is no channel
  std::unique_ptr<Multiplexer> multiplexer_;  // of a relay
  bool in_channel_ = false;                   // what arrives is for one of its channels
  SessionState state_ = SessionState::kHello;
  IdleTimer idle_timer_;  // since state_ began
  std::optional<ClientId> client_;
  ClientInfo info_;                             // from the Hello
  std::unique_ptr<Introduction> introduction_;  // until the peer is believed
  std::string said_name_;
  std::string proven_name_;  // empty: the peer has proven nothing
  std::uint64_t process_ = 0;
  std::uint32_t ordinal_ = 0;
  std::uint64_t reply_bytes_ = 0;  // of the reply that is arriving, or a relay's sum of some; 0: none is
  bool in_chunk_ = false;          // a piece of a reply is arriving
  bool adds_ = false;
  bool takes_chunks_ = false;   // of a client: its Welcome said so
  bool passes_chunks_ = false;  // of a relay
};

}  // namespace gradwire
