#include "proto/wire/address.h"

#include <gtest/gtest.h>
#include <string>

namespace gradwire {
namespace {

TEST(Address, SplitsHostAndPortWithAnyBrackets) {
  struct Case {
    const char *text, *host, *port;
  };
  for (const Case& c : {Case{"127.0.0.1:7000", "127.0.0.1", "7000"}, Case{"[::1]:7000", "::1", "7000"},
                        Case{"localhost:0", "localhost", "0"}, Case{":65535", "", "65535"},
                        Case{"host:00007000", "host", "7000"}}) {
    const auto address = parse_address(c.text, AddressUse::kToListen);
    ASSERT_TRUE(address) << c.text;
    EXPECT_EQ(address->host, c.host);
    EXPECT_EQ(address->port, c.port);
  }
}

TEST(Address, RejectsOtherTextsAndShowsTheFormat) {
  for (const char* text :
       {"", "nowhere", "7000", "host:", "host:http", "host:-1", "host:70 ", "host: 70", "[::1]"}) {
    const auto address = parse_address(text, AddressUse::kToListen);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().message, std::string(text) + ": write it as HOST:PORT, as in 127.0.0.1:7000");
  }
}

TEST(Address, NeedsAHostToConnectTo) {
  EXPECT_TRUE(parse_address("[::1]:7000", AddressUse::kToConnect));
  EXPECT_FALSE(parse_address(":7000", AddressUse::kToConnect));
  const auto zero = parse_address("host:0", AddressUse::kToConnect);
  ASSERT_FALSE(zero);
  EXPECT_EQ(zero.error().message.substr(0, 32), "host:0: no server is at port 0; ");
  EXPECT_EQ(parse_address("host:65536", AddressUse::kToListen).error().message,
            "host:65536: a port is a number of 0 to 65535");
}

TEST(Address, RecognizesThisMachineByItsNumberNotBySimilarNames) {
  for (const char* host : {"localhost", "127.0.0.1", "127.8.9.10", "::1"})
    EXPECT_TRUE(is_loopback({host, "7000"})) << host;
  for (const char* host : {"", "0.0.0.0", "10.0.0.1", "127.evil.example", "127.0.0.1.example", "127.",
                           "::", "localhost.example", "::11"})
    EXPECT_FALSE(is_loopback({host, "7000"})) << host;
}

TEST(Address, ResolvesThisMachineAndRejectsImpossibleHosts) {
  const auto found = look_up({"127.0.0.1", "7000"}, AddressUse::kToConnect);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)->ai_family, AF_INET);
  EXPECT_TRUE(look_up({"", "0"}, AddressUse::kToListen));
  EXPECT_FALSE(look_up({"no host", "7000"}, AddressUse::kToConnect));
}

}  // namespace
}  // namespace gradwire
