// Tests of zero-copy sends: the bytes arrive unchanged, and the owner is held until the kernel has finished.
#include "fl_server/net/zero_copy_sender.h"

#include <chrono>
#include <gtest/gtest.h>
#include <numeric>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "fl_server/net/listener.h"
#include "tests/support/fake_client.h"

namespace gradwire {
namespace {

using Bytes = std::vector<std::byte>;

std::shared_ptr<const Bytes> a_megabyte() {
  Bytes bytes(1 << 20);
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<std::byte>(k * 31 >> 3);
  return std::make_shared<const Bytes>(std::move(bytes));
}

class ZeroCopySenderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const int few = 1 << 16;
    ASSERT_EQ(::setsockopt(near_, SOL_SOCKET, SO_SNDBUF, &few, sizeof few), 0);
    zero_copy_sender_ = ZeroCopySender::of(near_);
    if (zero_copy_sender_ == nullptr) GTEST_SKIP() << "this system has no MSG_ZEROCOPY";
  }
  ~ZeroCopySenderTest() override {
    ::close(near_);
    ::close(far_);
  }
  static int accepted(Listener& listener) {
    for (int fd = -1;; std::this_thread::yield())
      if (listener.accept(fd) == Listener::Accepted::kSocket) return fd;
  }
  // Sends as much as the kernel takes now.
  std::size_t send_zero_copy_from(std::size_t begin, const std::shared_ptr<const Bytes>& bytes) {
    std::size_t done = begin;
    while (done < bytes->size()) {
      const ssize_t sent = zero_copy_sender_->send(std::span(*bytes).subspan(done), bytes);
      if (sent <= 0) break;
      done += static_cast<std::size_t>(sent);
    }
    return done - begin;
  }
  void receive(Bytes& to, std::size_t count) {
    const std::size_t begin = to.size();
    to.resize(begin + count);
    ASSERT_EQ(::recv(far_, &to[begin], count, MSG_WAITALL), static_cast<ssize_t>(count));
  }
  bool is_back_soon() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (; !zero_copy_sender_->empty() && std::chrono::steady_clock::now() < deadline;
         std::this_thread::yield())
      zero_copy_sender_->take_back();
    return zero_copy_sender_->empty();
  }

  Listener listener_{"127.0.0.1:0"};
  const int far_ = connect_to(listener_.address(), 4096);
  const int near_ = accepted(listener_);
  std::unique_ptr<ZeroCopySender> zero_copy_sender_;
};

TEST_F(ZeroCopySenderTest, HoldsTheOwnerUntilThePeerHasReadAll) {
  auto bytes = a_megabyte();
  const Bytes sent = *bytes;
  const std::weak_ptr<const Bytes> owner = bytes;
  std::size_t done = send_zero_copy_from(0, bytes);
  ASSERT_GT(done, 0u);
  ASSERT_LT(done, sent.size()) << "the peer reads nothing";
  Bytes got;
  while (done < sent.size()) {
    receive(got, done - got.size());
    done += send_zero_copy_from(done, bytes);
  }
  bytes.reset();
  zero_copy_sender_->take_back();
  EXPECT_FALSE(owner.expired()) << "the peer has not read all";
  receive(got, sent.size() - got.size());
  EXPECT_EQ(got, sent);
  EXPECT_TRUE(is_back_soon());
  EXPECT_TRUE(owner.expired());
  EXPECT_FALSE(zero_copy_sender_->saves_copies()) << "on one machine the kernel copies";
}

TEST_F(ZeroCopySenderTest, HoldsOwnersSeparately) {
  std::vector<std::weak_ptr<const Bytes>> owners;
  Bytes sent, got;
  for (int k = 0; k < 20; ++k) {
    const auto bytes = std::make_shared<const Bytes>(100, static_cast<std::byte>(k));
    sent.insert(sent.end(), bytes->begin(), bytes->end());
    owners.push_back(bytes);
    ASSERT_EQ(send_zero_copy_from(0, bytes), 100u);
    if (k % 7 == 6) receive(got, sent.size() - got.size());
  }
  receive(got, sent.size() - got.size());
  EXPECT_EQ(got, sent);
  EXPECT_TRUE(is_back_soon());
  for (const auto& owner : owners) EXPECT_TRUE(owner.expired());
}

TEST_F(ZeroCopySenderTest, DoesNotHoldTheOwnerOfAFailedSend) {
  const auto bytes = a_megabyte();
  ::shutdown(near_, SHUT_WR);
  EXPECT_EQ(zero_copy_sender_->send(*bytes, bytes), -1);
  EXPECT_TRUE(zero_copy_sender_->empty());
  EXPECT_EQ(bytes.use_count(), 1);
}

TEST(ZeroCopySender, IsNullForADescriptorThatIsNotASocket) {
  EXPECT_EQ(ZeroCopySender::of(STDIN_FILENO), nullptr);
}

}  // namespace
}  // namespace gradwire
