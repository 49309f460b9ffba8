// A client for tests of the server. It sends and receives raw bytes in the thread of the test, and lets the
// server work while it waits.
#pragma once

#include <chrono>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire/codec.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {

// Connects with a receive buffer of `receive_bytes`, which the kernel may round up. If 0, the kernel chooses
// the size, up to tens of MB.
inline int connect_to(const std::string& address, int receive_bytes = 0) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (receive_bytes > 0) {
    EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes), 0);
  }
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0) << std::strerror(errno);
  return fd;
}

struct FakeFrame {
  Prefix prefix;
  std::string header, payload;
};

class FakeClient {
 public:
  // `turn` lets the server work for a few milliseconds.
  FakeClient(const std::string& address, std::function<void()> turn, int receive_bytes = 0)
      : fd_(connect_to(address, receive_bytes)), turn_(std::move(turn)) {}
  ~FakeClient() { hang_up(); }
  FakeClient(FakeClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        turn_(std::move(other.turn_)),
        received_(std::move(other.received_)) {}
  FakeClient& operator=(FakeClient&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(turn_, other.turn_);
    std::swap(received_, other.received_);
    std::swap(ended_, other.ended_);
    return *this;
  }

  void hang_up() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  // Sends all bytes while the server reads.
  void send(const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) sent += static_cast<std::size_t>(n);
      if (n < 0 && errno != EAGAIN) break;  // the server has closed the connection
      turn_();
    }
    turn_();  // also after an error: the server logs the reason only after it has closed the connection
  }

  // Returns the next frame, or nothing if the server closes the connection or sends nothing for 5 s.
  std::optional<FakeFrame> read() {
    if (!fill(kPrefixBytes)) return std::nullopt;
    std::array<std::byte, kPrefixBytes> raw;
    std::memcpy(raw.data(), received_.data(), kPrefixBytes);
    const auto prefix = read_prefix(raw, std::uint64_t{1} << 40, true);
    if (!prefix) {
      ADD_FAILURE() << prefix.error().message;
      return std::nullopt;
    }
    const std::size_t size = kPrefixBytes + prefix->header_len + prefix->payload_len;
    if (!fill(size)) return std::nullopt;
    FakeFrame frame{*prefix, received_.substr(kPrefixBytes, prefix->header_len),
                    received_.substr(kPrefixBytes + prefix->header_len, prefix->payload_len)};
    EXPECT_TRUE(check_header(raw, std::as_bytes(std::span(frame.header))).has_value());
    received_.erase(0, size);
    return frame;
  }
  // Returns the next frame that is not a heartbeat.
  std::optional<FakeFrame> read_message() {
    for (;;) {
      auto frame = read();
      if (!frame || frame->prefix.type != FrameType::kHeartbeat) return frame;
    }
  }

  // Returns whether the server closed the connection without another message.
  bool is_hung_up_on() { return !read_message() && ended_; }
  // Returns the Error after which the server closed the connection, or nothing if it did not.
  std::optional<wire::ErrorMessage> read_refusal() {
    const auto frame = read_message();
    if (!frame || frame->prefix.type != FrameType::kError) return std::nullopt;
    wire::ErrorMessage error;
    if (!error.ParseFromString(frame->header) || !is_hung_up_on()) return std::nullopt;
    return error;
  }

  static std::string hello_frame(const std::string& name, std::optional<std::uint32_t> part = {},
                                 std::uint32_t parts = 0) {
    wire::Hello hello;
    hello.set_protocol(kWireVersion);
    hello.set_client_name(name);
    if (part) {
      hello.set_part_index(*part);
      hello.set_part_count(parts);
    }
    return control_frame(FrameType::kHello, hello);
  }
  static std::string join_frame(std::uint64_t samples = 10) {
    wire::Join join;
    join.set_columns(3);
    join.set_sample_count(samples);
    join.set_test_count(0);
    join.add_labels(-1);
    join.add_labels(1);
    return control_frame(FrameType::kJoin, join);
  }

  // Sends Hello and Join. Returns the client number that the server assigns.
  std::optional<std::uint32_t> shake_hands(const std::string& name, std::optional<std::uint32_t> part = {},
                                           std::uint32_t parts = 0) {
    send(hello_frame(name, part, parts));
    const auto frame = read_message();
    wire::Welcome welcome;
    if (!frame || frame->prefix.type != FrameType::kWelcome || !welcome.ParseFromString(frame->header))
      return std::nullopt;
    send(join_frame());
    return welcome.client();
  }

 private:
  bool fill(std::size_t bytes) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (received_.size() < bytes) {
      if (std::chrono::steady_clock::now() > end) return false;
      static std::vector<char> buffer(4 << 20);
      const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (n > 0) received_.append(buffer.data(), static_cast<std::size_t>(n));
      if (n == 0 || (n < 0 && errno != EAGAIN)) {
        ended_ = true;
        turn_();  // the server logs the reason only after it has closed the connection
        return false;
      }
      turn_();
    }
    return true;
  }

  int fd_;
  std::function<void()> turn_;
  std::string received_;
  bool ended_ = false;
};

// Returns the bytes of a whole frame.
inline std::string bytes_of(const Encoded& message) {
  std::string bytes(reinterpret_cast<const char*>(message.prefix.data()), kPrefixBytes);
  bytes += message.header;
  for (const auto section : message.sections)
    bytes.append(reinterpret_cast<const char*>(section.data()), section.size());
  return bytes;
}

}  // namespace gradwire
