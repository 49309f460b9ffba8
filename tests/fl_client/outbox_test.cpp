// The messages that a session wants to send: in order, in any steps.
#include "fl_client/outbox.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace gradwire {
namespace {

using Then = Outbox::Then;

// Lets everything leave, at most `step` bytes at a time. Adds what the messages led to.
std::string sent(Outbox& outbox, std::size_t step, std::vector<Then>& thens) {
  std::string text;
  for (auto segments = outbox.outgoing(); !segments.empty(); segments = outbox.outgoing()) {
    EXPECT_FALSE(segments[0].empty());
    std::size_t bytes = 0;
    for (const auto segment : segments) {
      const std::size_t count = std::min(segment.size(), step - bytes);
      text.append(reinterpret_cast<const char*>(segment.data()), count);
      bytes += count;
    }
    if (const auto then = outbox.left(bytes)) thens.push_back(*then);
  }
  return text;
}

TEST(Outbox, SendsMessagesInOrderInStepsOfAnySize) {
  const std::string one = "12345", two = "678";
  Encoded answer;
  answer.prefix.fill(std::byte{'p'});
  answer.header = "head";
  answer.sections = {std::as_bytes(std::span(one)), {}, std::as_bytes(std::span(two))};
  for (const std::size_t step : {1u, 2u, 3u, 7u, 30u, 1000u}) {
    Outbox outbox;
    outbox.put("hello");
    outbox.put("join", Then::kSayJoined);
    outbox.put(answer, Then::kPutAnswerAway);
    std::vector<Then> thens;
    EXPECT_EQ(sent(outbox, step, thens), "hellojoin" + std::string(kPrefixBytes, 'p') + "head12345678")
        << step;
    EXPECT_EQ(thens, (std::vector<Then>{Then::kNothing, Then::kSayJoined, Then::kPutAnswerAway}));
  }
}

TEST(Outbox, ForgetsAMessageOfWhichAPartHasLeft) {
  Outbox outbox;
  outbox.put("a long message", Then::kSayJoined);
  outbox.put("another");
  (void)outbox.outgoing();
  EXPECT_FALSE(outbox.left(6));
  outbox.clear();
  EXPECT_TRUE(outbox.outgoing().empty());
  outbox.put("hello");
  std::vector<Then> thens;
  EXPECT_EQ(sent(outbox, 1000, thens), "hello");
}

}  // namespace
}  // namespace gradwire
