// A client without threads: a program calls step() again and again, and waits between the calls as it likes.
// The same session as join_and_answer(), over a connection that never blocks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fl_client/client.h"
#include "fl_client/membership.h"
#include "fl_client/step_stream.h"
#include "proto/wire/address.h"

namespace gradwire {

class StepClient {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Clock = std::function<Time()>;
  // Returns a socket that is connected to the server or connecting, or -1. The client owns it then.
  using Connect = std::function<int(const std::string& server)>;

  // Without `connect`, the client opens sockets itself; the resolver of names may then block a step. Throws
  // as Membership.
  explicit StepClient(ClientSettings settings, Connect connect = {}, Clock clock = {});
  ~StepClient();
  StepClient(const StepClient&) = delete;
  StepClient& operator=(const StepClient&) = delete;

  struct Wait {
    int fd = -1;  // -1 if only the time counts
    bool reads = false, writes = false;
    std::chrono::milliseconds at_most{0};
  };
  // Does one thing, and says what to wait for before the next call. Returns false once the run is over, or
  // the oracle was stopped. Throws as join_and_answer().
  bool step(Wait& next);

  // Sends a heartbeat if it is due, while step() calls the oracle or reads data; else does nothing. The
  // oracle or another thread may call it.
  void keep_alive();

  enum class Stage : std::uint8_t { kConnecting, kJoining, kTraining, kOver };
  struct Progress {
    Stage stage = Stage::kConnecting;
    std::uint64_t answered = 0, late = 0;        // in the run so far
    std::uint64_t bytes_up = 0, bytes_down = 0;  // the sums over all connections
  };
  Progress progress() const;

 private:
  enum class Phase : std::uint8_t { kIdle, kOpening, kAgreeing, kServing, kOver };
  using milliseconds = std::chrono::milliseconds;

  void begin();
  void open_next();
  void wait_for_socket(Wait& next);
  void agree(Wait& next);
  void serve(Wait& next);
  Status send_some();
  Result<bool> send_beat();
  void set_busy(bool value);
  void send_last_words() noexcept;
  // Returns whether bytes were read.
  bool read_some();
  void begin_head();
  void take_head();
  template <class Take>
  void take(const Take& bytes);
  void answer();
  void end(const ClientEnding& ending, bool was_connected, ErrorKind kind = ErrorKind::kInvalid);
  void close();
  void wait_until(Time due, Wait& next) const;

  const ClientSettings settings_;
  const Connect connect_;
  const Clock clock_;
  Membership membership_;
  Phase phase_ = Phase::kIdle;
  Time due_;  // of the next attempt, or the end of this one

  // An attempt to connect.
  AddressList found_{nullptr, &::freeaddrinfo};
  const addrinfo* where_ = nullptr;
  int opening_ = -1;  // the socket
  std::string trouble_;

  // A connection.
  std::unique_ptr<StepStream> stream_;
  std::uint64_t earlier_up_ = 0, earlier_down_ = 0;  // bytes of the connections before
  milliseconds heartbeat_{0}, silence_{0};
  std::uint64_t bytes_per_second_ = 0;
  // Of the last byte sent and read, of the first write without effect since, and when the arriving frame must
  // be whole.
  Time sent_at_, heard_at_, stalled_at_, frame_due_;
  std::vector<std::byte> head_;  // the prefix and then the header of the arriving frame
  std::size_t head_size_ = 0, head_there_ = 0;
  std::string beat_;           // the frame of a heartbeat
  std::size_t beat_left_ = 0;  // bytes of it that wait to be sent
  // Guards is_busy_, and while it is set the stream and what belongs to it: this thread uses none of it then.
  std::mutex busy_;
  bool is_busy_ = false;
};

}  // namespace gradwire
