// Tests of the handshake thread by itself, with scripted filters.
#include "fl_server/net/handshake_worker.h"

#include <chrono>
#include <future>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/random.h"
#include "proto/security/certificates.h"
#include "proto/security/tls.h"
#include "tests/fl_server/scripted_filter.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

// The returned steps, in order.
class Returned {
 public:
  std::function<void(HandshakeStep)> receiver() {
    return [this](HandshakeStep step) {
      const std::lock_guard lock(mutex_);
      steps_.push_back(std::move(step));
      changed_.notify_one();
    };
  }
  std::vector<HandshakeStep> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30), [&] { return steps_.size() >= count; }));
    return std::exchange(steps_, {});
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return steps_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<HandshakeStep> steps_;
};

class HandshakeWorkerTest : public ::testing::Test {
 protected:
  HandshakeStep step(ScriptedFilter::OnFeed on_feed, std::vector<std::byte> arrived = {}) {
    return {std::make_unique<ScriptedFilter>(std::move(on_feed), filters), std::move(arrived), wanted,
            returned.receiver()};
  }
  // Keeps the worker busy until `released`, and returns once the worker is busy.
  void block(HandshakeWorker& worker) {
    HandshakeStep blocking = step([this](auto) {
      begun.set_value();
      released.get_future().wait();
      return Unit{};
    });
    ASSERT_TRUE(worker.submit(blocking));
    begun.get_future().wait();
  }

  std::atomic<int> filters{0};  // filters that exist
  std::promise<void> begun, released;
  const std::shared_ptr<std::atomic<bool>> wanted = std::make_shared<std::atomic<bool>>(true);
  Returned returned;
};

TEST_F(HandshakeWorkerTest, FeedsOnItsOwnThreadAndReturnsTheFilter) {
  HandshakeWorker worker(4);
  std::thread::id thread;
  std::size_t bytes = 0;
  HandshakeStep given = step(
      [&](std::span<const std::byte> arrived) {
        thread = std::this_thread::get_id();
        bytes = arrived.size();
        return Unit{};
      },
      std::vector<std::byte>(17));
  const StreamFilter* const filter = given.filter.get();
  ASSERT_TRUE(worker.submit(given));
  const std::vector<HandshakeStep> back = returned.wait_for(1);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].filter.get(), filter);
  EXPECT_TRUE(back[0].status);
  EXPECT_EQ(bytes, 17u);
  EXPECT_NE(thread, std::this_thread::get_id());
}

#ifdef __linux__
TEST_F(HandshakeWorkerTest, HasALowerPriorityThanTheThreadOfTheRounds) {
  HandshakeWorker worker(4);
  int niceness = 0;
  HandshakeStep given = step([&](auto) {
    niceness = ::getpriority(PRIO_PROCESS, 0);
    return Unit{};
  });
  const int own = ::getpriority(PRIO_PROCESS, 0);
  ASSERT_TRUE(worker.submit(given));
  returned.wait_for(1);
  EXPECT_EQ(niceness, std::min(own + 5, 19));
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), own);
}
#endif

TEST_F(HandshakeWorkerTest, LeavesAStepUnchangedIfTheQueueIsFull) {
  HandshakeWorker worker(2);
  block(worker);
  const auto nothing = [](auto) { return Unit{}; };
  HandshakeStep first = step(nothing), second = step(nothing), third = step(nothing, {std::byte{7}});
  EXPECT_TRUE(worker.submit(first));
  EXPECT_TRUE(worker.submit(second));
  EXPECT_FALSE(worker.submit(third));
  EXPECT_TRUE(third.filter);
  EXPECT_EQ(third.arrived.size(), 1u);
  EXPECT_TRUE(third.done);
  released.set_value();
  EXPECT_EQ(returned.wait_for(3).size(), 3u);
  EXPECT_TRUE(worker.submit(third)) << "there is room again";
  EXPECT_EQ(returned.wait_for(1).size(), 1u);
}

TEST_F(HandshakeWorkerTest, SkipsStepsOfClosedConnections) {
  HandshakeWorker worker(4);
  block(worker);
  bool was_fed = false;
  HandshakeStep late = step([&](auto) {
    was_fed = true;
    return Unit{};
  });
  const auto open = std::make_shared<std::atomic<bool>>(true);
  late.wanted = open;
  ASSERT_TRUE(worker.submit(late));
  *open = false;
  released.set_value();
  EXPECT_EQ(returned.wait_for(2).size(), 2u);
  EXPECT_FALSE(was_fed);
}

TEST_F(HandshakeWorkerTest, DestroysWaitingStepsAndFinishesTheCurrentOne) {
  std::atomic<int> fed{0};
  std::thread releasing;
  {
    HandshakeWorker worker(100);
    block(worker);
    for (int k = 0; k < 50; ++k) {
      HandshakeStep waiting = step([&](auto) {
        ++fed;
        return Unit{};
      });
      ASSERT_TRUE(worker.submit(waiting));
    }
    EXPECT_EQ(filters, 51);
    releasing = std::thread([this] { released.set_value(); });
  }
  releasing.join();
  EXPECT_GE(returned.size(), 1u);
  EXPECT_EQ(returned.size(), 1u + static_cast<std::size_t>(fed));
  returned.wait_for(1).clear();
  EXPECT_EQ(filters, 0);
}

TEST_F(HandshakeWorkerTest, ReportsThatThereIsNoMemory) {
  HandshakeWorker worker(4);
  HandshakeStep given = step([](auto) -> Status { throw std::bad_alloc(); });
  ASSERT_TRUE(worker.submit(given));
  const std::vector<HandshakeStep> back = returned.wait_for(1);
  ASSERT_FALSE(back[0].status);
  EXPECT_EQ(back[0].status.error().message, "out of memory for its handshake");
}

TEST_F(HandshakeWorkerTest, ReturnsErrorsForHostileBytes) {
  TemporaryFolder folder;
  make_authority(folder.path());
  make_server_certificate(folder.path(), folder.path(), {"127.0.0.1"}, std::chrono::hours(1));
  TlsServer server(folder.path() / "server.pem", folder.path() / "server.key");
  HandshakeWorker worker(1000);
  Random random(1, "hostile handshakes");
  std::size_t errors = 0;
  for (int k = 0; k < 300; ++k) {
    std::vector<std::byte> bytes(random.below(2000));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    // Every second input begins like a handshake record, so that more of it is parsed.
    const std::byte record[] = {std::byte{22}, std::byte{3}, std::byte{1}};
    if (k % 2 == 0) std::copy_n(record, std::min<std::size_t>(3, bytes.size()), bytes.begin());
    HandshakeStep given{server.accept(), std::move(bytes), wanted, returned.receiver()};
    ASSERT_TRUE(worker.submit(given));
  }
  for (const HandshakeStep& back : returned.wait_for(300)) {
    EXPECT_FALSE(back.filter->ready());
    errors += back.status ? 0 : 1;
  }
  EXPECT_GT(errors, 200u) << "the others are incomplete records";
}

}  // namespace
}  // namespace gradwire
