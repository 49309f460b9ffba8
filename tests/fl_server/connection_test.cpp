// Tests of a connection on a socket that delivers pieces of any size: the connection receives the frames as
// they were sent, and keeps no memory for bytes that it has used.
#include "fl_server/net/connection.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include "base/crc32c.h"
#include "tests/support/count_allocations.h"

namespace gradwire {
namespace {

class PieceSocket final : public Socket {
 public:
  void start(SocketHandler& handler) override { handler_ = &handler; }
  Moved read(std::span<std::byte> to) override {
    const std::size_t count = std::min(to.size(), coming_.size());
    if (count == 0) return {};
    std::copy_n(coming_.begin(), count, to.begin());
    coming_ = coming_.subspan(count);
    return {Got::kSome, count};
  }
  void pause_reading(bool) override {}
  Moved write(std::span<const std::span<const std::byte>>) override { return {}; }
  void want_write() override {}
  std::string failure() const override { return "it failed"; }
  void end_writing() override {}
  void close() override { open_ = false; }
  bool is_open() const override { return open_; }
  const std::string& peer() const override { return peer_; }

  void arrive(std::span<const std::byte> piece) {
    coming_ = piece;
    while (!coming_.empty() && open_) handler_->on_readable();
  }

 private:
  SocketHandler* handler_ = nullptr;
  std::span<const std::byte> coming_;
  const std::string peer_ = "10.0.0.1:1";
  bool open_ = true;
};

class NoSockets final : public SocketLayer {
 public:
  std::string address() const override { return ""; }
  SteadyTime now() const override { return {}; }
  void start(SocketLayerHandler&, std::chrono::milliseconds, bool) override {}
  void stop_accepting() override {}
  Result<std::unique_ptr<Socket>> connect(const std::string&) override { return Error{"there are none"}; }
  void post(std::function<void()> job) override { job(); }
  void wait(SteadyTime, const std::function<bool()>&) override {}
};

struct SentFrame {
  std::string header, payload;
  bool wanted = true;  // if false, its payload is discarded
  bool operator==(const SentFrame&) const = default;

  std::string bytes() const {
    const auto raw = write_prefix(FrameType::kReply, std::as_bytes(std::span(header)), payload.size(),
                                  crc32c(std::as_bytes(std::span(payload))));
    return std::string(reinterpret_cast<const char*>(raw.data()), raw.size()) + header + payload;
  }
};

// A handler that stores frames. It discards the payload of a frame whose header begins with 'n'.
class FrameTaker final : public FrameHandler {
 public:
  Result<std::span<const std::span<std::byte>>> on_header(const Prefix& prefix,
                                                          std::span<const std::byte> header) override {
    frame_.header.assign(reinterpret_cast<const char*>(header.data()), header.size());
    frame_.wanted = frame_.header.empty() || frame_.header[0] != 'n';
    frame_.payload.assign(prefix.payload_len, '\0');
    const auto whole = std::as_writable_bytes(std::span(frame_.payload));
    places_ = {whole.first(whole.size() / 3), {}, whole.subspan(whole.size() / 3)};
    headers += 1;
    return frame_.wanted ? std::span<const std::span<std::byte>>(places_)
                         : std::span<const std::span<std::byte>>();
  }
  Status on_frame() override {
    if (keeps) frames.push_back(frame_);
    frame_ = {};
    return Unit{};
  }
  void on_closed(const std::string& why) override { closed = why; }
  void on_shut() override {}

  bool keeps = true;
  std::size_t headers = 0;
  std::vector<SentFrame> frames;
  std::string closed;

 private:
  SentFrame frame_;
  std::vector<std::span<std::byte>> places_ = std::vector<std::span<std::byte>>(3);
};

struct Receiver {
  Receiver() {
    auto made = std::make_unique<PieceSocket>();
    socket = made.get();
    connection = std::make_unique<Connection>(sockets, std::move(made), times, taker, counts);
    connection->set_max_payload(1 << 20);
    connection->start();
  }
  NoSockets sockets;
  WireTimes times;
  ServerMetrics server_metrics;
  ConnectionCounts counts{.server_metrics = server_metrics, .receive_budget = {}};
  FrameTaker taker;
  PieceSocket* socket = nullptr;
  std::unique_ptr<Connection> connection;
};

TEST(Connection, SeesTheSentFramesInPiecesOfAnySize) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const auto up_to = [&](std::size_t most) { return random() % (most + 1); };
    Receiver receiver;
    std::vector<SentFrame> sent;
    std::string bytes;
    for (int k = 0; k < 30; ++k) {
      const std::size_t header = up_to(9) == 0 ? kMaxHeaderBytes - up_to(10) : up_to(200);
      const std::size_t payload = up_to(2) == 0 ? 0 : up_to(3 * kReadBytes);
      SentFrame frame{std::string(header, static_cast<char>('a' + k)), std::string(payload, '\0')};
      for (char& c : frame.payload) c = static_cast<char>(random());
      frame.wanted = header == 0 || frame.header[0] != 'n';
      bytes += frame.bytes();
      if (frame.wanted || payload == 0) sent.push_back(frame);
    }
    const std::size_t longest = std::size_t{8} << up_to(14);
    for (std::span<const std::byte> left = std::as_bytes(std::span(bytes)); !left.empty();) {
      const std::size_t piece = std::min(left.size(), 1 + up_to(longest));
      receiver.socket->arrive(left.first(piece));
      left = left.subspan(piece);
    }
    EXPECT_EQ(receiver.taker.closed, "");
    EXPECT_EQ(receiver.taker.headers, 30u);
    EXPECT_TRUE(receiver.taker.frames == sent) << "seed " << seed;
  }
}

TEST(Connection, UsesMemoryOnlyForAHalfFrameAndReleasesIt) {
  Receiver receiver;
  receiver.taker.keeps = false;
  const std::string bytes = SentFrame{std::string(3000, 'h'), {}}.bytes();
  const auto all = std::as_bytes(std::span(bytes));
  receiver.socket->arrive(all);  // the handler allocates what it keeps for all later frames
  const std::size_t quiet = allocations::live;
  receiver.socket->arrive(all.first(2000));
  EXPECT_GE(allocations::live, quiet + 1900);
  EXPECT_LE(allocations::live, quiet + 2100);
  receiver.socket->arrive(all.subspan(2000));
  EXPECT_EQ(receiver.taker.headers, 2u);
  EXPECT_EQ(allocations::live, quiet);
  const std::size_t before = allocations::live;
  const Connection another(receiver.sockets, std::make_unique<PieceSocket>(), receiver.times, receiver.taker,
                           receiver.counts);
  EXPECT_LT(allocations::live + sizeof another, before + 1500);
}

}  // namespace
}  // namespace gradwire
