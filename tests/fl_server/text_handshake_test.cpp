// Tests of the kernels in Hello and the alphabet in Join, including hostile and old clients.
#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "tests/fl_server/tcp_fixture.h"

namespace gradwire {
namespace {

class TextHandshake : public TcpTransportTest {
 protected:
  // Sends Hello and Join. If `kernels` is empty, the client is an older release.
  FakeClient join(const std::string& name, const std::string& kernels,
                  const std::optional<std::string>& alphabet) {
    FakeClient client = connect();
    wire::Hello hello;
    hello.set_protocol(kWireVersion);
    hello.set_client_name(name);
    if (!kernels.empty()) hello.set_kernels(kernels);
    client.send(control_frame(FrameType::kHello, hello));
    EXPECT_TRUE(client.read_message()) << "no Welcome";
    wire::Join join;
    join.set_columns(0);
    join.set_sample_count(10);
    join.set_test_count(0);
    if (alphabet) join.set_alphabet(*alphabet);
    client.send(control_frame(FrameType::kJoin, join));
    turn_for(milliseconds(20));
    return client;
  }
  std::size_t warnings() const {
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.find("kernels") != std::string::npos;
    }));
  }
};

TEST_F(TextHandshake, KeepsTheAlphabet) {
  open();
  const FakeClient a = join("a", "avx2", "abc\x80\xff"), b = join("b", "avx2", std::nullopt);
  ASSERT_TRUE(session_manager->gather(milliseconds(2000)));
  EXPECT_EQ(session_manager->table().info(0).alphabet, "abc\x80\xff");
  EXPECT_EQ(session_manager->table().info(1).alphabet, "");
  EXPECT_EQ(session_manager->table().info(0).kernels, "avx2");
}

TEST_F(TextHandshake, RefusesAnAlphabetThatIsNotAscending) {
  open();
  for (const std::string& alphabet : {std::string("ba"), std::string("aa"), std::string("\xff\x01"),
                                      std::string(1000, 'x'), std::string("a\0b", 3)}) {
    FakeClient client = join("a", "avx2", alphabet);
    const auto refusal = client.read_refusal();
    ASSERT_TRUE(refusal) << alphabet;
    EXPECT_NE(refusal->message().find("Join: the letters of the alphabet are not ascending"),
              std::string::npos)
        << refusal->message();
    EXPECT_EQ(session_manager->table().joined_count(), 0u);
  }
}

TEST_F(TextHandshake, RefusesAReturningClientWithOtherLetters) {
  open();
  FakeClient a = join("a", "avx2", "abc"), b = join("b", "avx2", "abc");
  ASSERT_TRUE(session_manager->gather(milliseconds(2000)));
  start();
  FakeClient again = join("a", "avx2", "abcd");
  const auto refusal = again.read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->message().find("returned with other data"), std::string::npos) << refusal->message();
}

TEST_F(TextHandshake, WarnsOnceOfDifferentKernelsAndNamesBothClients) {
  open();
  const FakeClient a = join("a", "avx2", "abc");
  EXPECT_EQ(warnings(), 0u);
  const FakeClient b = join("b", "neon", "abc");
  EXPECT_EQ(warnings(), 1u);
  EXPECT_TRUE(
      logged("warning: client 1 'b' computes with kernels 'neon', client 0 'a' with 'avx2': results agree "
             "only up to rounding; only equal kernels give equal bits"));
}

TEST_F(TextHandshake, DoesNotWarnOfEqualOrUnknownKernels) {
  for (const char* second : {"avx2", ""}) {
    lines.clear();
    open();
    const FakeClient a = join("a", "avx2", "abc"), b = join("b", second, "abc");
    ASSERT_TRUE(session_manager->gather(milliseconds(2000)));
    EXPECT_EQ(warnings(), 0u);
  }
}

TEST_F(TextHandshake, TakesTheFirstNameOfPortableKernelsForTheSame) {
  open();
  const FakeClient a = join("a", "baseline", "abc"), b = join("b", "portable", "abc");
  ASSERT_TRUE(session_manager->gather(milliseconds(2000)));
  EXPECT_EQ(warnings(), 0u);
  EXPECT_EQ(session_manager->table().info(0).kernels, "portable");
}

}  // namespace
}  // namespace gradwire
