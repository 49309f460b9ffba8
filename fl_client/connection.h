// The client's end of its connection to the server. Reads block, and only one thread reads. The heartbeat
// thread may also write.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "fl_client/client_session.h"
#include "proto/security/stream_filter.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"

namespace gradwire {

class ServerConnection {
 public:
  // Makes the client's end of a filter for a connection to `host`.
  using MakeFilter = std::function<std::unique_ptr<StreamFilter>(const std::string& host)>;

  // Connects. Errors say what to check. `io_timeout` limits the reads of the handshake and writes that make
  // no progress. Without `filter` the bytes are sent unencrypted. Once `stop` is requested, the connection is
  // lost: connect(), reads and writes return an error soon.
  static Result<std::unique_ptr<ServerConnection>> connect(const std::string& address,
                                                           std::chrono::milliseconds connect_timeout,
                                                           std::chrono::milliseconds io_timeout,
                                                           const MakeFilter& filter = {},
                                                           const std::stop_token& stop = {});
  ~ServerConnection();
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  struct ReceivedFrame {
    Prefix prefix;
    std::span<const std::byte> header;  // valid until the next read
  };
  // Reads the next frame up to its payload, and verifies its checksum.
  Result<ReceivedFrame> read_head(std::uint64_t max_payload);
  // Returns the longest time that read_head() may take.
  std::chrono::milliseconds longest_head() const;
  // Fills the place with the next bytes of the payload.
  Status read_payload(std::span<std::byte> place);
  // Returns whether part of the next frame has arrived.
  bool more_waiting();

  // Writes a message, which consists of these segments.
  Status write(std::span<const std::span<const std::byte>> segments);
  Status write(const Encoded& message);

  // Calls work(). If work() still runs at the next tick, another thread begins to call take_one() whenever
  // there is something to read. Ticks are 1/4 of the heartbeat interval apart, but at most 250 ms. The thread
  // stops once take_one() returns false or work() returns. REQUIRES: no other thread reads.
  void read_while_computing(const std::function<void()>& work, const std::function<bool()>& take_one);

  // Sends a heartbeat whenever nothing else was sent for the interval, even while the reader is busy. Gives
  // up a server that sends nothing for several intervals, but allows its messages the time that they take at
  // the rate of `pace`. Call it once.
  void keep_pace(const Pace& pace);

 private:
  struct HangUp {
    int fd;
    void operator()() const noexcept;
  };

  ServerConnection(int fd, std::chrono::milliseconds io_timeout, const std::stop_token& stop);
  Status agree();
  Result<std::size_t> receive(std::span<std::byte> to);
  Result<std::size_t> receive_raw(std::span<std::byte> to);
  bool has_unread();
  void filter_arrived();
  Status fill(std::size_t bytes);
  Status write_segments(std::span<const std::span<const std::byte>> segments);
  Status write_filtered(std::span<const std::span<const std::byte>> segments);
  Status write_raw(std::span<const std::span<const std::byte>> segments);
  Status flush_filter();
  void beat(std::chrono::milliseconds interval);
  void send_heartbeat(std::chrono::milliseconds interval);
  void start_reader();

  const int fd_;
  std::chrono::milliseconds silence_;                // longest silence before the client gives up the server
  std::chrono::steady_clock::time_point frame_due_;  // time limit of the frame that is arriving
  std::uint64_t bytes_per_second_ = 4096;            // slowest rate that a server may have
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // range of the unused bytes in buffer_
  std::vector<std::span<const std::byte>> segments_;

  std::mutex filtering_;  // held while the filter is used; never while bytes are sent or waited for
  std::unique_ptr<StreamFilter> filter_;  // null if there is none
  std::vector<std::byte> arrived_;        // not yet filtered
  std::vector<std::byte> filtered_;       // to be sent
  std::string trouble_;                   // an error of the filter
  ErrorKind trouble_kind_ = ErrorKind::kInvalid;

  std::mutex writing_;  // held while a frame is written
  std::chrono::steady_clock::time_point written_;

  std::mutex working_;
  const std::function<bool()>* take_one_ = nullptr;  // null if no work is in progress
  std::thread reader_thread_;                        // reads until the work is done
  // An eventfd that tells the reader thread that the work is done. Created with the first reader thread.
  int worked_ = -1;

  std::mutex stopping_;
  std::condition_variable stop_changed_;
  bool stop_ = false;
  std::thread heartbeat_;
  std::optional<std::stop_callback<HangUp>> on_stop_;
};

}  // namespace gradwire
