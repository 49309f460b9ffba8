// Sums of the replies of one round of a site, for gradwire-server relay --aggregate.
//
// If the server accepts sums, the relay holds a reply until all asked clients of the site have replied, or
// half of the deadline has passed. Then it sends the held replies as one sum, in the order of clients, if the
// sum is shorter. It forwards unchanged a reply that cannot be added, and the reply of a client that leaves.
// It keeps the replies of a sum until the server accepts the sum. The server refuses a sum if it already has
// one of the replies. The relay then sends the replies one by one.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "fl_server/net/forwarded_frame.h"
#include "fl_server/net/socket_layer.h"

namespace gradwire {

namespace wire {
class Received;
class Round;
}  // namespace wire

class RelaySums {
 public:
  // Limit of the bytes of replies that are held, or kept until the server has accepted their sum. Further
  // replies are forwarded.
  static constexpr std::uint64_t kMostBytesHeld = std::uint64_t{256} << 20;

  // `up` sends a frame to the server. `log` takes one line.
  RelaySums(std::function<void(const Outgoing&)> up, Log log);
  ~RelaySums();

  // Notes whether the server accepts sums in this run.
  void allow(bool allow);
  // Handles a frame of the server for a client. Returns false if the caller must not forward it.
  bool watch(std::uint32_t channel, const ForwardedFrame& forwarded);
  // Handles a request of the server to a client.
  void asked(std::uint32_t channel, const wire::Round& round, SteadyTime now);
  // Notes that the server has sent this request id to all clients that it asks now.
  void asked_all(std::uint64_t request_id);
  // Handles a reply of a client. Returns false if the caller must forward it unchanged.
  bool take(std::uint32_t channel, ForwardedFrame& forwarded);
  // Handles the departure of a client. by_server: the server closed this channel and ignores what it sends.
  void left(std::uint32_t channel, bool by_server);
  void check_time(SteadyTime now);
  // Handles the loss of the server.
  void forget();

  struct RelayReply {
    enum class ReplyStage : std::uint8_t { kAwaited, kHeld, kAdded, kPassedOn };
    ReplyStage stage = ReplyStage::kAwaited;
    std::uint32_t channel = 0, client = 0;
    ForwardedFrame forwarded;  // only with kHeld and kAdded
  };
  // The part that depends on the precision of the run.
  class Adder;

 private:
  void begin(const std::string& start);
  bool heard(std::uint32_t channel, const wire::Received& received);
  void settle(RelayReply& reply);
  void send_when_complete();
  void send_all();
  void forward(RelayReply& reply);

  const std::function<void(const Outgoing&)> up_;
  const Log log_;
  bool allowed_ = false, warned_of_sums_ = false;
  std::string start_;             // the Start header from which adder_ was made
  std::unique_ptr<Adder> adder_;  // null until a Start has arrived
  std::chrono::milliseconds half_deadline_{0};
  std::map<std::uint32_t, std::uint32_t> clients_;  // client numbers by channel

  // The request in progress.
  std::uint64_t request_id_ = 0;
  std::uint32_t round_ = 0;
  bool all_asked_ = false;
  SteadyTime since_;
  std::map<std::uint32_t, RelayReply> replies_;  // by channel: the clients that were asked
  std::uint64_t bytes_held_ = 0;
};

}  // namespace gradwire
