// Tests of handshakes on a thread of their own, over real sockets, with filters that the test can block.
#include <chrono>
#include <future>
#include <gtest/gtest.h>
#include <set>
#include <thread>

#include "fl_server/net/filtered_sockets.h"
#include "fl_server/net/tcp_sockets.h"
#include "tests/fl_server/scripted_filter.h"
#include "tests/support/fake_client.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;

// A peer handler that echoes what it reads.
class Echo final : public SocketHandler {
 public:
  explicit Echo(std::unique_ptr<Socket> socket) : socket_(std::move(socket)) {}
  void start() { socket_->start(*this); }
  Socket& socket() { return *socket_; }
  const std::string& received() const { return received_; }
  const std::string& failure() const { return failure_; }
  int times_writable() const { return times_writable_; }
  Socket::Got write(std::string_view text) {
    const std::span<const std::byte> segment = std::as_bytes(std::span(text));
    return socket_->write(std::span(&segment, 1)).got;
  }

 private:
  void on_readable() override {
    std::byte bytes[100];
    const Socket::Moved moved = socket_->read(bytes);
    if (moved.got == Socket::Got::kRefused) failure_ = socket_->failure();
    if (moved.got != Socket::Got::kSome && moved.got != Socket::Got::kNothing) return socket_->close();
    received_.append(reinterpret_cast<const char*>(bytes), moved.bytes);
    if (moved.bytes > 0) write({reinterpret_cast<const char*>(bytes), moved.bytes});
  }
  void on_writable() override { times_writable_ += 1; }

  const std::unique_ptr<Socket> socket_;
  std::string received_, failure_;
  int times_writable_ = 0;
};

class ApartHandshakeTest : public ::testing::Test, private SocketLayerHandler {
 protected:
  void open(std::size_t most_waiting = 100) {
    Filters filters;
    filters.accept = [this] {
      return std::make_unique<ScriptedFilter>([this](auto bytes) { return on_feed(bytes); }, filters_alive);
    };
    filters.handshakes_apart = most_waiting;
    layer = filtered(listen_on_tcp("127.0.0.1:0"), filters);
    layer->start(*this, milliseconds(10), false);
  }
  // Blocks until release() if the first byte is 'h'. Fails if it is 'x'.
  Status on_feed(std::span<const std::byte> bytes) {
    threads.insert(std::this_thread::get_id());
    fed += 1;
    if (bytes[0] == std::byte{'h'}) held.wait();
    if (bytes[0] == std::byte{'x'}) return Error{"it is not as it should be"};
    return Unit{};
  }
  void release() {
    if (!std::exchange(is_released, true)) let_go.set_value();
  }
  void TearDown() override {
    release();
    peers.clear();
    layer.reset();
    EXPECT_EQ(filters_alive, 0);
  }
  bool wait_until(const std::function<bool()>& done) {
    layer->wait(layer->now() + std::chrono::seconds(30), done);
    return done();
  }
  // Returns the server's end of a new connection on which `bytes` arrive.
  Echo& connect(const std::string& bytes) {
    const std::size_t before = peers.size();
    ends.emplace_back(layer->address(), [this] { turn(); });
    EXPECT_TRUE(wait_until([&] { return peers.size() > before; }));
    ends.back().send(bytes);
    return *peers.back();
  }
  void turn() {
    layer->wait(layer->now() + milliseconds(1), [] { return false; });
  }

  std::unique_ptr<SocketLayer> layer;
  std::vector<std::unique_ptr<Echo>> peers;
  std::vector<FakeClient> ends;
  std::set<std::thread::id> threads;  // threads that fed filters; read only while no filter is fed
  std::atomic<int> filters_alive{0}, fed{0};
  std::promise<void> let_go;
  std::shared_future<void> held = let_go.get_future().share();
  bool is_released = false;

 private:
  void on_accepted(std::unique_ptr<Socket> socket) override {
    peers.push_back(std::make_unique<Echo>(std::move(socket)));
    peers.back()->start();
  }
  void on_no_descriptors() override {}
  void on_tick() override {}
  void on_stop() override {}
};

TEST_F(ApartHandshakeTest, ServesOtherConnectionsWhileAHandshakeComputes) {
  open();
  Echo& early = connect("early");
  ASSERT_TRUE(wait_until([&] { return early.received() == "early"; }));
  Echo& held_up = connect("held up");
  ASSERT_TRUE(wait_until([&] { return fed == 2; }));
  ends[0].send(", served");
  EXPECT_TRUE(wait_until([&] { return early.received() == "early, served"; }));
  ends[1].send(", and more");
  for (int k = 0; k < 20; ++k) turn();
  EXPECT_EQ(held_up.received(), "");
  release();
  EXPECT_TRUE(wait_until([&] { return held_up.received() == "held up, and more"; }));
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST_F(ApartHandshakeTest, ForgetsAConnectionThatClosesMeanwhile) {
  open();
  Echo& held_up = connect("held up");
  ASSERT_TRUE(wait_until([&] { return fed == 1; }));
  Echo& waiting = connect("next");
  for (int k = 0; k < 20; ++k) turn();
  held_up.socket().end_writing();
  waiting.socket().close();
  peers.erase(peers.begin());  // held_up
  release();
  EXPECT_TRUE(wait_until([&] { return filters_alive == 0; }));
  EXPECT_EQ(fed, 1) << "it computed for a closed connection";
}

TEST_F(ApartHandshakeTest, AppliesRequestsMadeMeanwhileOnceTheHandshakeIsDone) {
  open();
  Echo& held_up = connect("held up");
  ASSERT_TRUE(wait_until([&] { return fed == 1; }));
  EXPECT_EQ(held_up.write("too early"), Socket::Got::kNothing);
  held_up.socket().want_write();
  held_up.socket().pause_reading(true);
  release();
  EXPECT_TRUE(wait_until([&] { return held_up.times_writable() == 1; }));
  EXPECT_EQ(held_up.received(), "") << "reading is paused";
  held_up.socket().pause_reading(false);
  EXPECT_TRUE(wait_until([&] { return held_up.received() == "held up"; }));
}

TEST_F(ApartHandshakeTest, EndsTheStreamOnceTheHandshakeIsDone) {
  open();
  Echo& held_up = connect("held up");
  ASSERT_TRUE(wait_until([&] { return fed == 1; }));
  held_up.socket().pause_reading(true);
  held_up.socket().end_writing();
  release();
  EXPECT_TRUE(ends[0].is_hung_up_on());
  EXPECT_TRUE(held_up.socket().is_open());
}

TEST_F(ApartHandshakeTest, RefusesAPeerWhoseHandshakeFails) {
  open();
  Echo& wrong = connect("xyz");
  EXPECT_TRUE(wait_until([&] { return !wrong.failure().empty(); }));
  EXPECT_EQ(wrong.failure(), "it is not as it should be");
  EXPECT_TRUE(ends[0].is_hung_up_on());
}

TEST_F(ApartHandshakeTest, RefusesPeersWhileTooManyHandshakesWait) {
  open(2);
  connect("held up");
  ASSERT_TRUE(wait_until([&] { return fed == 1; }));
  Echo& first = connect("first");
  Echo& second = connect("second");
  for (int k = 0; k < 20; ++k) turn();
  Echo& third = connect("third");
  EXPECT_TRUE(wait_until([&] { return !third.failure().empty(); }));
  EXPECT_EQ(third.failure(), "too many handshakes wait for this process; retry later");
  release();
  EXPECT_TRUE(wait_until([&] { return first.received() == "first" && second.received() == "second"; }));
  Echo& late = connect("late");
  EXPECT_TRUE(wait_until([&] { return late.received() == "late"; })) << "there is room again";
}

TEST_F(ApartHandshakeTest, ShutsDownWhileHandshakesWait) {
  open();
  connect("held up");
  ASSERT_TRUE(wait_until([&] { return fed == 1; }));
  for (int k = 0; k < 10; ++k) connect("waits");
  for (int k = 0; k < 20; ++k) turn();
  EXPECT_EQ(filters_alive, 11);
  std::thread releasing([this] { let_go.set_value(); });
  is_released = true;
  peers.clear();
  layer.reset();
  releasing.join();
  EXPECT_EQ(filters_alive, 0);
}

}  // namespace
}  // namespace gradwire
