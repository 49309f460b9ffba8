// A transport over TCP, to clients in processes of their own.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fl_server/sessions/session_manager.h"
#include "fl_server/sessions/sum_inbox.h"
#include "proto/wire/chunk.h"
#include "proto/wire/codec.h"
#include "rounds/transport.h"

namespace gradwire {

template <class Real>
class TcpTransport : public Transport<Real>, private SessionEvents {
 public:
  // Begins the run; `start` is the whole Start frame. With takes_sums, relays may add up replies
  // (takes_sums() of algorithm.h). REQUIRES: session_manager.gather() returned true, and this is its only
  // transport.
  TcpTransport(SessionManager& session_manager, const CodecContext& context, std::string start,
               bool takes_sums = false);
  ~TcpTransport() override;

  // Sends a request. A body is encoded once per request id. A message to a disconnected client is lost; the
  // event kJoined reports that the client has returned.
  std::uint64_t send(ClientId client, const Request<Real>& request) override;
  void acknowledge(ClientId client, std::uint64_t request_id, Ack ack) override;
  void discard(const Event<Real>& event) override;
  void report_misbehaviour(const Event<Real>& event) override;
  const Event<Real>& next(double deadline) override;
  void settle() override;
  double now() const override;

  // Returns the payload bytes of all replies that arrived in chunks while their clients still computed.
  std::uint64_t bytes_in_chunks() const { return bytes_in_chunks_; }

 private:
  static constexpr int kInSum = 2;  // a value of Inbox::viewed
  struct Inbox {
    // Two slots, so a repeated reply can arrive while the loop still uses the first one.
    std::unique_ptr<UplinkSlot<Real>> slots[2];
    int arriving = 0;         // the slot of the reply that is arriving
    int viewed = -1;          // the slot of the reply that the loop views; kInSum if it was in a sum
    std::uint64_t asked = 0;  // the newest request id sent
    // The arriving reply if it is longer than a chunk.
    std::string header;                            // header of the whole reply; empty if it is short
    std::span<const std::span<std::byte>> places;  // targets of the whole payload
    std::uint64_t from = 0;                        // offset in the payload of the bytes that arrive now
    std::uint64_t have = 0;                        // payload bytes kept after the connection was lost
    std::vector<std::span<std::byte>> rest;
    // Size of the arriving reply as one message, if it arrives in several; else 0.
    std::uint64_t whole_bytes = 0;
    Assembly assembly;  // chunks of the next reply
  };

  Result<std::span<const std::span<std::byte>>> on_reply_header(ClientId client, const Prefix& prefix,
                                                                std::span<const std::byte> header) override;
  Status on_reply(ClientId client, std::uint64_t bytes) override;
  Result<std::span<const std::span<std::byte>>> on_chunk_header(ClientId client, const Prefix& prefix,
                                                                std::span<const std::byte> header) override;
  Status on_chunk(ClientId client) override;
  void on_broken_reply(ClientId client, std::uint64_t payload_bytes) override;
  Result<std::span<const std::span<std::byte>>> on_sum_header(
      std::uint64_t relay, const Prefix& prefix, std::span<const std::byte> header,
      const std::function<bool(ClientId)>& is_client_of) override;
  Status on_sum(std::uint64_t relay, std::uint64_t bytes) override;
  // Returns the slot for the arriving reply.
  UplinkSlot<Real>& slot_for(Inbox& inbox);
  // Prepares for a reply that completes the chunks received before.
  Result<std::span<const std::span<std::byte>>> complete(Inbox& inbox, const Prefix& prefix,
                                                         const ChunkedHeader& header);
  // Returns true if the request id is the newest for all clients of the arriving sum, and none has replied.
  bool is_awaited(std::uint64_t relay) const;
  // Refuses the arriving sum and tells its clients, on their channels.
  void refuse_sum(std::uint64_t relay);
  void on_relay_left(std::uint64_t relay) override { sums_.forget(relay); }
  void on_joined(ClientId client) override;
  void on_left(ClientId client) override;
  void on_stop() override;

  void encode_once(std::uint64_t request_id, const Downlink<Real>* body);
  void own_body();
  void keep_body_while_written();

  SessionManager& session_manager_;
  Codec<Real> codec_;
  std::vector<Inbox> inboxes_;  // by client
  BlockMemo draws_;             // shared by the replies of all clients
  const bool takes_sums_;
  SumInbox<Real> sums_;
  std::uint64_t newest_ = 0;  // request id
  std::uint64_t bytes_in_chunks_ = 0;
  bool asking_ = false;  // relays have yet to be told that newest_ was sent to all clients asked now
  std::deque<Event<Real>> events_;
  bool handed_ = false;  // the caller has the first of events_
  const Event<Real> nothing_;
  // The last encoded body and its source. Null if only unfinished writes hold the body.
  std::shared_ptr<const EncodedBody<Real>> body_;
  std::shared_ptr<SharedBody> shared_;
  std::weak_ptr<const EncodedBody<Real>> unfinished_body_;
  std::weak_ptr<SharedBody> unfinished_;
  std::uint64_t body_request_id_ = 0;
  bool returned_since_ = false;  // next() has returned since: *body_source_ may have changed
  const Downlink<Real>* body_source_ = nullptr;
};

}  // namespace gradwire
