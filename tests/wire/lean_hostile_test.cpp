// The coder of proto/lean accepts and refuses the same bytes as protobuf, and understands them alike.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/lean_messages.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value /= 128) bytes += static_cast<char>(value % 128 + 128);
  return bytes + static_cast<char>(value);
}
// Writes a varint in more bytes than it needs.
std::string long_varint(std::uint64_t value, std::size_t size) {
  std::string bytes = varint(value);
  while (bytes.size() < size) {
    bytes.back() = static_cast<char>(bytes.back() | '\x80');
    bytes += '\0';
  }
  return bytes;
}
enum WireType { kVarint, kFixed64, kLength, kGroup, kGroupEnd, kFixed32 };
std::string tag(std::uint64_t number, int type) { return varint(number * 8 + static_cast<unsigned>(type)); }
std::string bytes_field(std::uint64_t number, const std::string& content) {
  return tag(number, kLength) + varint(content.size()) + content;
}
std::string groups(int depth) {
  std::string begin, end;
  for (int k = 0; k < depth; ++k) begin += tag(20, kGroup), end += tag(20, kGroupEnd);
  return begin + end;
}
std::string zeros(std::size_t count) { return std::string(count, '\0'); }

// Expects a verdict of both coders. If they accept, they write `written`.
template <class Wire, class Lean>
class Verdicts {
 public:
  void accepted(const std::string& bytes, const std::string& written) {
    EXPECT_EQ(pair_.difference(bytes), "") << ::testing::PrintToString(bytes);
    EXPECT_TRUE(pair_.accepted) << ::testing::PrintToString(bytes);
    EXPECT_EQ(pair_.written, written);
  }
  void kept(const std::string& bytes) { accepted(bytes, bytes); }
  void refused(const std::string& bytes) {
    EXPECT_EQ(pair_.difference(bytes), "") << ::testing::PrintToString(bytes);
    EXPECT_FALSE(pair_.accepted) << ::testing::PrintToString(bytes);
  }

 private:
  MessagePair pair_ = make_message_pair<Wire, Lean>();
};
using HelloVerdicts = Verdicts<wire::Hello, lean_wire::Hello>;
using PartVerdicts = Verdicts<wire::Part, lean_wire::Part>;
using RoundVerdicts = Verdicts<wire::Round, lean_wire::Round>;
using SumsVerdicts = Verdicts<wire::FeatureSums, lean_wire::FeatureSums>;

const std::string kProtocol = tag(1, kFixed32) + "abcd";

TEST(LeanHostile, KeepsUnknownFieldsAfterTheOthers) {
  HelloVerdicts hello;
  for (const std::string& unknown :
       {tag(20, kVarint) + varint(300), tag(20, kFixed64) + zeros(8), bytes_field(20, "text"),
        tag(20, kFixed32) + "efgh", tag(20, kGroup) + tag(3, kVarint) + varint(1) + tag(20, kGroupEnd),
        bytes_field((1u << 29) - 1, ""), groups(3)}) {
    hello.accepted(unknown + kProtocol, kProtocol + unknown);
    hello.accepted(unknown + kProtocol + unknown, kProtocol + unknown + unknown);
  }
  hello.accepted(long_varint(20 * 8, 4) + long_varint(5, 10), tag(20, kVarint) + varint(5));
  hello.accepted(long_varint(20 * 8 + 2, 3) + long_varint(1, 5) + "x", bytes_field(20, "x"));
}

TEST(LeanHostile, TakesAKnownFieldOfAnotherTypeForUnknown) {
  HelloVerdicts hello;
  for (const std::string& other :
       {tag(1, kVarint) + varint(7), tag(1, kFixed64) + zeros(8), bytes_field(1, "abcd"),
        tag(1, kGroup) + tag(1, kGroupEnd), tag(2, kVarint) + varint(7), tag(11, kFixed32) + zeros(4)})
    hello.accepted(other + kProtocol, kProtocol + other);
  SumsVerdicts sums;
  sums.kept(tag(1, kFixed64) + zeros(8));
  sums.kept(tag(3, kFixed32) + zeros(4));
  RoundVerdicts round;
  round.kept(tag(4, kFixed32) + zeros(4));
}

TEST(LeanHostile, RefusesFieldNumberZeroAndUnknownWireTypes) {
  HelloVerdicts hello;
  for (int type = 0; type < 8; ++type) {
    hello.refused(tag(0, type) + zeros(10));
    hello.refused(kProtocol + long_varint(static_cast<unsigned>(type), 3) + zeros(10));
    hello.refused(tag(20, kGroup) + tag(0, type) + zeros(8) + tag(20, kGroupEnd));
  }
  for (const int type : {6, 7}) {
    hello.refused(tag(20, type) + zeros(10));
    hello.refused(tag(1, type) + zeros(10));
  }
}

TEST(LeanHostile, ReadsVarintsOfTenBytesAndTagsAndLengthsOfFive) {
  PartVerdicts part;
  const std::string seeded = tag(3, kVarint) + varint(1);
  for (std::size_t size = 1; size <= 10; ++size)
    part.accepted(tag(3, kVarint) + long_varint(1, size), seeded);
  part.refused(tag(3, kVarint) + long_varint(1, 11));
  part.refused(tag(20, kVarint) + long_varint(1, 11));
  part.accepted(tag(3, kVarint) + std::string(9, '\x80') + '\x7e', tag(3, kVarint) + varint(0));
  part.accepted(tag(20, kVarint) + std::string(9, '\xff') + '\x7f', tag(20, kVarint) + varint(~0ull));
  for (std::size_t size = 1; size <= 5; ++size) part.accepted(long_varint(3 * 8, size) + varint(1), seeded);
  part.refused(long_varint(3 * 8, 6) + varint(1));
  part.accepted(varint((1ull << 32) + 3 * 8) + varint(1), seeded);  // a tag of 33 bits
  part.refused(varint(1ull << 32) + varint(1));
  HelloVerdicts hello;
  for (const std::uint64_t number : {2, 11, 20}) {
    for (std::size_t size = 1; size <= 5; ++size)
      hello.accepted(tag(number, kLength) + long_varint(2, size) + "ab", bytes_field(number, "ab"));
    hello.refused(tag(number, kLength) + long_varint(2, 6) + "ab");
    hello.refused(tag(number, kLength) + varint((1ull << 32) + 2) + "ab");
  }
}

TEST(LeanHostile, ReadsNumbersOfFewerBitsThanTheirVarints) {
  PartVerdicts part;
  for (const std::uint64_t yes : {1ull, 2ull, 256ull, 1ull << 32, 1ull << 63, ~0ull})
    part.accepted(tag(3, kVarint) + varint(yes), tag(3, kVarint) + varint(1));
  Verdicts<state::Client, lean_state::Client> client;
  for (const std::uint64_t high : {0ull, 1ull << 32, 1ull << 40, ~0ull << 32})
    client.accepted(tag(7, kVarint) + varint(high + 5), tag(7, kVarint) + varint(5));
}

TEST(LeanHostile, KeepsUnknownValuesOfEnumsAsUnknownFields) {
  PartVerdicts part;
  const auto shape = [](std::uint64_t value) { return tag(1, kVarint) + varint(value); };
  const std::string dim = tag(4, kFixed32) + "abcd";
  part.kept(shape(5) + dim);
  for (const std::uint64_t value : {6ull, 255ull, 256ull, 1ull << 31, ~0ull, (1ull << 32) + 6, ~0ull >> 1})
    part.accepted(shape(value) + dim, dim + shape(value));
  part.accepted(shape((1ull << 32) + 5), shape(5));
  part.accepted(shape(2) + shape(9) + shape(8), shape(2) + shape(9) + shape(8));
}

TEST(LeanHostile, TakesTheLastOfSeveralScalarsAndMergesMessages) {
  HelloVerdicts hello;
  hello.accepted(tag(1, kFixed32) + "efgh" + kProtocol, kProtocol);
  hello.accepted(bytes_field(2, "long") + bytes_field(2, "a"), bytes_field(2, "a"));
  hello.kept(bytes_field(11, "a") + bytes_field(11, ""));
  RoundVerdicts round;
  const std::string number = tag(1, kFixed32) + "abcd", flags = tag(2, kFixed32) + "efgh";
  const std::string part = bytes_field(3, tag(4, kFixed32) + "dim ");
  round.accepted(bytes_field(4, number + part) + bytes_field(5, "") + bytes_field(4, flags + part),
                 bytes_field(4, number + flags + part + part) + bytes_field(5, ""));
}

TEST(LeanHostile, ReadsPackedAndUnpackedLists) {
  SumsVerdicts sums;
  sums.accepted(tag(1, kFixed32) + "abcd" + bytes_field(1, "efghijkl") + tag(1, kFixed32) + "mnop",
                bytes_field(1, "abcdefghijklmnop"));
  sums.accepted(tag(3, kFixed64) + "12345678" + bytes_field(3, ""), bytes_field(3, "12345678"));
  sums.accepted(bytes_field(1, ""), "");
  for (std::size_t size = 0; size < 40; ++size) {
    if (size % 4 == 0)
      sums.accepted(bytes_field(1, std::string(size, 'x')),
                    size == 0 ? "" : bytes_field(1, std::string(size, 'x')));
    else
      sums.refused(bytes_field(1, std::string(size, 'x')));
    if (size % 8 != 0) sums.refused(bytes_field(3, std::string(size, 'x')));
  }
  sums.refused(tag(1, kFixed32) + "abc");
  sums.refused(tag(1, kLength) + varint(8) + "abcd");
  sums.refused(tag(3, kFixed64) + "1234567");
}

TEST(LeanHostile, RefusesGroupsThatAreNotClosed) {
  HelloVerdicts hello;
  const std::string begin = tag(20, kGroup), end = tag(20, kGroupEnd);
  hello.kept(begin + end);
  hello.refused(begin);
  hello.refused(end);
  hello.refused(begin + tag(21, kGroupEnd));
  hello.refused(begin + tag(21, kGroup) + end + tag(21, kGroupEnd));
  hello.refused(begin + end + end);
  hello.refused(bytes_field(2, "a") + tag(2, kGroupEnd));
  RoundVerdicts round;
  round.kept(bytes_field(4, begin + end));
  round.refused(begin + bytes_field(4, "") + tag(4, kGroupEnd));
  round.refused(bytes_field(4, begin) + end);
  round.refused(bytes_field(4, end));
}

TEST(LeanHostile, RefusesMoreThanAHundredMessagesAndGroupsInEachOther) {
  HelloVerdicts hello;
  hello.kept(groups(100));
  hello.refused(groups(101));
  hello.kept(groups(100) + groups(100));
  RoundVerdicts round;
  round.kept(bytes_field(4, groups(99)));
  round.refused(bytes_field(4, groups(100)));
  round.kept(bytes_field(4, bytes_field(3, groups(98))));
  round.refused(bytes_field(4, bytes_field(3, groups(99))));
}

TEST(LeanHostile, RefusesLengthsAboveTheRest) {
  HelloVerdicts hello;
  RoundVerdicts round;
  for (const std::uint64_t length : {4ull, 16ull, 17ull, 1ull << 14, (1ull << 31) - 17, (1ull << 31) - 16,
                                     (1ull << 31) - 1, 1ull << 31, (1ull << 32) - 1, 1ull << 32, ~0ull}) {
    for (const std::uint64_t number : {2, 11, 20})
      hello.refused(tag(number, kLength) + varint(length) + "ab");
    round.refused(tag(4, kLength) + varint(length) + tag(20, kVarint) + varint(1));
    // The field ends in the message, but after the body around it.
    const std::string inner = tag(20, kLength) + varint(length) + "ab";
    round.refused(bytes_field(4, inner) + std::string(40, 'x'));
  }
  const std::string flags = tag(2, kFixed32) + zeros(4);
  for (std::size_t length = 0; length < 5; ++length)
    round.refused(tag(4, kLength) + varint(length + 1) + flags + zeros(4));
}

TEST(LeanHostile, ReadsTextThatIsNotUtf8) {
  HelloVerdicts hello;
  hello.kept(bytes_field(2, "\xff\xfe\x80") + bytes_field(11, "\xc0\x80"));
}

TEST(LeanHostile, AgreesOnEveryPrefixOfAMessage) {
  Random random(3, "lean");
  for (const MakeMessagePair make : kMessageTypes) {
    MessagePair pair = make();
    std::string bytes;
    while (bytes.size() < 10 || bytes.size() > 2'000) bytes = random_message(make, random);
    for (std::size_t size = 0; size <= bytes.size(); ++size)
      ASSERT_EQ(pair.difference(std::string_view(bytes).substr(0, size)), "");
  }
}

// Changes a message in one place. `other` gives bytes to insert.
void mutate(std::string& bytes, const std::string& other, Random& random) {
  const std::size_t at = random.below(bytes.size() + 1);
  const std::size_t left = bytes.size() - at;
  const auto piece = [&](const std::string& of) {
    const std::size_t from = random.below(of.size() + 1);
    return of.substr(from, random.below(std::min<std::size_t>(of.size() - from, 40) + 1));
  };
  static constexpr char kBytes[] = {0, 1, 2, 3, 4, 8, 0x7f, '\x80', '\x81', '\xff', 0x0b, 0x0c};
  switch (random.below(8)) {
    case 0:
      if (left > 0) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      break;
    case 1: bytes.resize(at); break;
    case 2: bytes.insert(at, piece(bytes)); break;
    case 3: bytes.insert(at, piece(other)); break;
    case 4: bytes.insert(at, 1, kBytes[random.below(std::size(kBytes))]); break;
    case 5:
      if (left > 0) bytes[at] = kBytes[random.below(std::size(kBytes))];
      break;
    case 6: bytes.erase(at, random.below(4)); break;
    default: bytes.replace(at, random.below(10), other, 0, random.below(40)); break;
  }
}

// Compares the verdicts on damaged messages. Returns how many were accepted.
int compare_damaged_messages(std::uint64_t seed, int messages_of_a_type) {
  int accepted = 0;
  for (std::size_t type = 0; type < kMessageTypes.size(); ++type) {
    Random random(seed, "lean hostile", type);
    MessagePair pair = kMessageTypes[type]();
    std::string other, bytes;
    for (int k = 0; k < messages_of_a_type; ++k) {
      if (k % 8 == 0) {
        other = random_message(kMessageTypes[random.below(kMessageTypes.size())], random);
        bytes = random_message(kMessageTypes[type], random).substr(0, 2'000);
      }
      std::string damaged = bytes;
      for (std::uint64_t changes = 1 + random.below(4); changes > 0; --changes)
        mutate(damaged, other, random);
      const std::string difference = pair.difference(damaged);
      if (difference.empty()) {
        accepted += pair.accepted ? 1 : 0;
        continue;
      }
      ADD_FAILURE() << "type " << type << ": " << difference << ": " << ::testing::PrintToString(damaged);
      return accepted;
    }
  }
  return accepted;
}

TEST(LeanHostile, AgreesOnAMillionDamagedMessages) {
  const int messages = scaled(50'000);
  const int accepted = compare_damaged_messages(4, messages);
  EXPECT_GT(accepted, messages);  // neither all are refused nor all accepted
  EXPECT_LT(accepted, messages * 19);
}

}  // namespace
}  // namespace gradwire
