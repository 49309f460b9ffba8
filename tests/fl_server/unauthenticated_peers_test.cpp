#include "fl_server/sessions/unauthenticated_peers.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace gradwire {
namespace {

TEST(Origin, IsTheAddressOrItsNetwork) {
  EXPECT_EQ(origin_of("10.0.0.7:5000"), "10.0.0.7");
  EXPECT_EQ(origin_of("[::ffff:10.0.0.7]:5000"), "::ffff:10.0.0.7");
  EXPECT_EQ(origin_of("[2001:db8:1:2:3:4:5:6]:5000"), origin_of("[2001:db8:1:2:ffff::1]:7"));
  EXPECT_NE(origin_of("[2001:db8:1:2::1]:5000"), origin_of("[2001:db8:1:3::1]:5000"));
  EXPECT_EQ(origin_of("unknown"), "unknown");
  EXPECT_EQ(origin_of("[fe80::1%eth0]:5000"), "fe80::/64");
}

TEST(UnauthenticatedPeers, PicksTheOldestOfTheLargestOrigin) {
  UnauthenticatedPeers unauthenticated;
  unauthenticated.add(1, "10.0.0.1:1");
  for (std::uint64_t id = 2; id < 6; ++id) unauthenticated.add(id, "10.0.0.2:" + std::to_string(id));
  EXPECT_EQ(unauthenticated.largest_origin(), "10.0.0.2");
  EXPECT_EQ(unauthenticated.eviction_candidate(), 2u);
  unauthenticated.remove(2);
  unauthenticated.add(6, "10.0.0.2:6");
  EXPECT_EQ(unauthenticated.eviction_candidate(), 3u);
  unauthenticated.remove(3);
  unauthenticated.remove(3);
  EXPECT_EQ(unauthenticated.size(), 4u);
}

TEST(UnauthenticatedPeers, ForgetsNoConnectionInAnyOrder) {
  UnauthenticatedPeers unauthenticated;
  std::map<std::uint64_t, std::string> naive;
  Random random(1, "newcomers");
  for (std::uint64_t id = 1; id < 3000; ++id) {
    const std::string peer = "10.0.0." + std::to_string(random.below(5)) + ":1";
    unauthenticated.add(id, peer);
    naive[id] = peer;
    const std::uint64_t leaves = random.below(id + 1);
    unauthenticated.remove(leaves);
    naive.erase(leaves);
    ASSERT_EQ(unauthenticated.size(), naive.size());
    if (naive.empty()) continue;
    std::map<std::string, std::size_t> counts;
    for (const auto& [number, from] : naive) counts[from] += 1;
    const std::uint64_t first = unauthenticated.eviction_candidate();
    for (const auto& [from, count] : counts) EXPECT_LE(count, counts[naive[first]]);
    for (const auto& [number, from] : naive) {
      if (from == naive[first]) {
        EXPECT_EQ(number, first);
        break;
      }
    }
  }
}

TEST(OriginLimit, CountsTheConnectionsOfEachOrigin) {
  OriginLimit limit(2);
  EXPECT_FALSE(limit.add("a"));
  EXPECT_FALSE(limit.add("a"));
  EXPECT_FALSE(limit.add("b"));
  EXPECT_TRUE(limit.add("a"));
  limit.remove("a");
  limit.remove("a");
  EXPECT_FALSE(limit.add("a"));
  limit.remove("one that was never added");
  OriginLimit none(0);
  for (int k = 0; k < 100; ++k) EXPECT_FALSE(none.add("a"));
}

}  // namespace
}  // namespace gradwire
