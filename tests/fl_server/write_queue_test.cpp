// Tests of messages that wait to be written: their order, replacement and cost.
#include "fl_server/net/write_queue.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace gradwire {
namespace {

// A socket that takes a limited number of bytes.
class GreedySocket : public Socket {
 public:
  std::size_t room = 0;
  std::string got;

  void start(SocketHandler&) override {}
  Moved read(std::span<std::byte>) override { return {}; }
  void pause_reading(bool) override {}
  Moved write(std::span<const std::span<const std::byte>> segments) override {
    std::size_t taken = 0;
    for (const auto segment : segments) {
      const std::size_t n = std::min(segment.size(), room);
      got.append(reinterpret_cast<const char*>(segment.data()), n);
      room -= n;
      taken += n;
    }
    return {taken > 0 ? Got::kSome : Got::kNothing, taken};
  }
  void want_write() override {}
  std::string failure() const override { return ""; }
  void end_writing() override {}
  void close() override {}
  bool is_open() const override { return true; }
  const std::string& peer() const override { return peer_; }

 private:
  const std::string peer_ = "here:1";
};

// A GreedySocket with zero-copy sends.
class ZeroCopySocket final : public GreedySocket {
 public:
  std::string zero_copy;
  std::vector<std::shared_ptr<const void>> owners;

  std::size_t zero_copy_from() const override { return 5; }
  Moved send_zero_copy(std::span<const std::byte> segment,
                       const std::shared_ptr<const void>& owner) override {
    EXPECT_GE(segment.size(), zero_copy_from());
    const Moved moved = write(std::span(&segment, 1));
    zero_copy.append(got, got.size() - moved.bytes);
    owners.push_back(owner);
    return moved;
  }
};

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

class WriteQueueTest : public ::testing::Test {
 protected:
  std::shared_ptr<SharedBody> body(const std::string& text) {
    const auto kept = std::make_shared<std::string>(text);
    return std::make_shared<SharedBody>(SharedBody{{bytes_of(*kept)}, kept, false});
  }
  static Outgoing request(std::uint64_t number, std::uint32_t channel, std::shared_ptr<SharedBody> body) {
    const std::string name = std::to_string(number) + "@" + std::to_string(channel);
    Outgoing message;
    message.head = "[" + name + ":";
    message.short_head = "[" + name + " same]";
    message.body = std::move(body);
    message.request = number;
    message.channel = channel;
    return message;
  }
  // Returns what the queue writes when the socket takes this many bytes.
  std::string write(std::size_t bytes = SIZE_MAX) {
    socket.room = bytes;
    socket.got.clear();
    while (queue.write_once(socket) == WriteQueue::WriteProgress::kSome) {
    }
    return socket.got;
  }

  WriteQueue queue;
  GreedySocket socket;
};

TEST_F(WriteQueueTest, WritesASharedBodyOnce) {
  const auto shared = body("body]");
  for (const std::uint32_t channel : {1, 2, 3}) queue.push(request(7, channel, shared));
  EXPECT_EQ(write(), "[7@1:body][7@2 same][7@3 same]");
  EXPECT_TRUE(queue.empty());
  queue.push(request(7, 4, shared));
  EXPECT_EQ(write(), "[7@4 same]") << "the relay still has it";
  queue.push(request(8, 1, body("other]")));
  EXPECT_EQ(write(), "[8@1:other]");
  queue.push(request(7, 1, shared));
  EXPECT_EQ(write(), "[7@1:body]") << "it is no longer the last one";
}

TEST_F(WriteQueueTest, SendsTheBodyWithTheNextMessageIfItsCarrierIsReplaced) {
  const auto old = body("old]"), fresh = body("fresh]");
  for (const std::uint32_t channel : {1, 2, 3}) queue.push(request(7, channel, old));
  write(4);
  for (const std::uint32_t channel : {1, 2, 3}) queue.push(request(8, channel, fresh));
  EXPECT_EQ(write(), ":old][8@2:fresh][8@3 same][8@1 same]") << "a channel keeps its position";
}

TEST_F(WriteQueueTest, DropsOlderRequestsEvenOfChannelsThatAreNotAskedAgain) {
  for (const std::uint32_t channel : {1, 2, 3, 4}) queue.push(request(7, channel, body("x]")));
  const std::uint64_t before = queue.bytes();
  queue.push(request(8, 3, body("y]")));
  EXPECT_LT(queue.bytes(), before / 2);
  EXPECT_EQ(write(), "[8@3:y]");
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.bytes(), 0u);
}

TEST_F(WriteQueueTest, ReplacesOnlyTheSameClientsRequestIfItIsAlone) {
  std::uint64_t request_id = 7;
  for (const std::uint32_t channel : {1, 2, 3, 2}) {
    Outgoing message = request(request_id++, channel, body("body]"));
    message.alone = true;
    queue.push(message);
  }
  EXPECT_EQ(write(), "[7@1:body][10@2:body][9@3:body]");
}

TEST_F(WriteQueueTest, NeverReplacesOrReordersControlFrames) {
  queue.push(Outgoing::control("start1 "));
  queue.push(request(7, 1, body("x]")));
  queue.push(Outgoing::control("start2 "));
  queue.push(request(8, 2, body("y]")));
  queue.push(Outgoing::control("error1 "));
  queue.push(request(8, 1, body("y]")));
  EXPECT_EQ(write(), "start1 [8@1:y]start2 [8@2:y]error1 ");
}

// The message that says that all clients were asked must follow all requests, even those that come later.
TEST_F(WriteQueueTest, PutsAMessageOfTheConnectionAfterItsRequests) {
  for (const std::uint64_t number : {7, 8}) {
    for (const std::uint32_t channel : {1, 2, 3}) {
      if (channel < 3 || number == 8) queue.push(request(number, channel, body("x]")));
    }
    Outgoing asked = Outgoing::control("asked" + std::to_string(number));
    asked.request = number;
    queue.push(std::move(asked));
  }
  EXPECT_EQ(write(), "[8@1:x][8@2:x][8@3:x]asked8");
}

TEST_F(WriteQueueTest, SendsLongOwnedSectionsWithoutACopyAndWithTheirOwner) {
  const auto kept = std::make_shared<std::string>("sections of its own");
  const std::string view = "what the sender may change";
  for (std::size_t room = 1; room < 40; ++room) {
    ZeroCopySocket zero_copy_owner;
    const auto shared = body("a body that is long]");
    for (Socket* const to : {static_cast<Socket*>(&socket), static_cast<Socket*>(&zero_copy_owner)}) {
      WriteQueue messages;
      messages.push(request(7, 1, shared));
      Outgoing own = Outgoing::control("{own:");
      own.sections = {bytes_of(*kept), bytes_of(*kept).first(3)};
      own.keep = kept;
      messages.push(own);
      own.sections = {bytes_of(view)};
      own.keep = nullptr;
      own.borrowed = true;
      messages.push(own);
      auto& greedy = static_cast<GreedySocket&>(*to);
      greedy.got.clear();
      while (!messages.empty()) {
        greedy.room = room;
        messages.write_once(greedy);
      }
    }
    EXPECT_EQ(zero_copy_owner.got, socket.got) << room;
    EXPECT_EQ(zero_copy_owner.zero_copy.find("sender"), std::string::npos) << "it is only borrowed";
    EXPECT_EQ(zero_copy_owner.zero_copy.find(':'), std::string::npos) << "heads are short";
    EXPECT_EQ(zero_copy_owner.zero_copy.substr(0, 6), std::string("a body"));
    for (const auto& owner : zero_copy_owner.owners) EXPECT_TRUE(owner == shared->keep || owner == kept);
  }
}

TEST_F(WriteQueueTest, StaysBoundedForAPeerThatReadsNothing) {
  std::uint64_t after_ten = 0;
  for (std::uint64_t round = 1; round <= 20'000; ++round) {
    const auto shared = body(std::string(100, 'x'));
    for (std::uint32_t channel = 1; channel <= 5; ++channel)
      if ((round + channel) % 3 != 0) queue.push(request(round, channel, shared));
    Outgoing asked = Outgoing::control("asked");
    asked.request = round;
    queue.push(std::move(asked));
    if (round == 10) after_ten = queue.bytes();
    EXPECT_LE(shared.use_count(), 6);
  }
  EXPECT_LE(queue.bytes(), 2 * after_ten);
}

// 150,000 messages wait. A queue that scanned them at each send would take minutes.
TEST_F(WriteQueueTest, SendsAtTheSameCostWithManyWaitingMessages) {
  for (int k = 0; k < 150'000; ++k) queue.push(Outgoing::control("error"));
  for (std::uint64_t round = 1; round <= 20'000; ++round) {
    queue.push(request(round, 1, nullptr));
    EXPECT_FALSE(queue.borrowing());
    EXPECT_GT(queue.bytes(), 150'000u * 5);
  }
}

TEST_F(WriteQueueTest, OwnsBorrowedSectionsInTheMiddleOfTheirWriting) {
  std::string vector = "0123456789";
  const auto shared = std::make_shared<SharedBody>(SharedBody{{bytes_of(vector)}, nullptr, true});
  std::string state = "abcdef";
  Outgoing resync = request(7, 1, shared);
  resync.short_head.clear();
  resync.sections = {bytes_of(state)};
  resync.borrowed = true;
  queue.push(resync);
  EXPECT_TRUE(queue.borrowing());
  EXPECT_EQ(write(8), "[7@1:012");
  queue.own();
  shared->own();
  EXPECT_FALSE(queue.borrowing());
  vector = state = "gone";
  EXPECT_EQ(write(), "3456789abcdef");
}

// Compares with a naive queue: all pushed messages in order, without the replaced ones.
TEST_F(WriteQueueTest, WritesWhatANaiveQueueWrites) {
  struct Naive {
    std::uint64_t request;
    std::uint32_t channel;
    std::string text;  // empty if a newer request replaced it
  };
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed, "queue");
    queue = {};
    std::vector<Naive> naive;
    std::string expected, got;
    std::uint64_t newest = 1;
    for (int step = 0; step < 60; ++step) {
      const std::uint32_t channel = static_cast<std::uint32_t>(random.below(4));
      switch (random.below(4)) {
        case 0:
          naive.push_back({0, 0, "(" + std::to_string(step) + ")"});
          queue.push(Outgoing::control(naive.back().text));
          break;
        case 1: {  // whole messages, so no message is partly written
          for (const Naive& message : naive) expected += message.text;
          naive.clear();
          got += write();
          break;
        }
        default: {
          newest += random.below(2);
          Outgoing message = request(newest, channel, nullptr);
          message.short_head.clear();
          for (Naive& other : naive)
            if (other.request != 0 && other.request != newest) other.text.clear();
          const auto same = std::find_if(naive.begin(), naive.end(), [&](const Naive& other) {
            return other.request != 0 && other.channel == channel;
          });
          if (same != naive.end() && channel != 0) {
            *same = {newest, channel, message.head};
          } else {
            if (same != naive.end()) naive.erase(same);
            naive.push_back({newest, channel, message.head});
          }
          queue.push(std::move(message));
        }
      }
    }
    for (const Naive& message : naive) expected += message.text;
    EXPECT_EQ(got + write(), expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gradwire
