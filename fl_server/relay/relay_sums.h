// Adds up the replies of one round of a site, for gradwire-server --upstream --aggregate.
//
// If the server takes sums, the relay holds a reply until all clients of the site that were asked have
// answered, or half of the deadline is over. Then it sends the held replies as one sum, in the order of
// clients, if the sum is shorter than they are. It passes on unchanged what cannot be added, and the reply of
// a client that leaves. It keeps the replies of a sum until the server has accepted the sum: if the server
// refuses it (because it has one of the replies already), the relay sends the replies one by one.
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
  // Bytes of replies that are held, or kept until the server has accepted their sum; more are passed on.
  static constexpr std::uint64_t kMostBytesHeld = std::uint64_t{256} << 20;

  // `up` sends a frame to the server, `log` takes one line.
  RelaySums(std::function<void(const Outgoing&)> up, Log log);
  ~RelaySums();

  // The server says whether this run takes sums.
  void allow(bool allow);
  // The server sends a frame for a client. False: the caller must not pass it on.
  bool watch(std::uint32_t channel, const ForwardedFrame& forwarded);
  // The server asks a client.
  void asked(std::uint32_t channel, const wire::Round& round, SteadyTime now);
  // The server has sent this request id to all clients that it asks now.
  void asked_all(std::uint64_t request_id);
  // A client sends a reply. False: the caller must pass it on as it is.
  bool take(std::uint32_t channel, ForwardedFrame& forwarded);
  // A client leaves. by_server: the server disconnected it, and takes nothing from this channel any more.
  void left(std::uint32_t channel, bool by_server);
  void check_time(SteadyTime now);
  // The server is lost.
  void forget();

  struct RelayReply {
    enum class ReplyStage : std::uint8_t { kAwaited, kHeld, kAdded, kPassedOn };
    ReplyStage stage = ReplyStage::kAwaited;
    std::uint32_t channel = 0, client = 0;
    ForwardedFrame forwarded;  // of kHeld and kAdded
  };
  // What depends on the precision of the run.
  class Adder;

 private:
  void begin(const std::string& start);
  bool heard(std::uint32_t channel, const wire::Received& received);
  void settle(RelayReply& reply);
  void send_when_complete();
  void send_all();
  void pass_on(RelayReply& reply);

  const std::function<void(const Outgoing&)> up_;
  const Log log_;
  bool allowed_ = false, said_exact_ = false;
  std::string start_;             // the header that adder_ was made from
  std::unique_ptr<Adder> adder_;  // null: the run is not known
  std::chrono::milliseconds half_deadline_{0};
  std::map<std::uint32_t, std::uint32_t> clients_;  // numbers, by channel

  // The request in progress.
  std::uint64_t request_id_ = 0;
  std::uint32_t round_ = 0;
  bool all_asked_ = false;
  SteadyTime since_;
  std::map<std::uint32_t, RelayReply> replies_;  // of those asked, by channel
  std::uint64_t bytes_held_ = 0;
};

}  // namespace gradwire
