// Tests of PeerLimits and ClientSessions, without connections.
#include "fl_server/sessions/peer_limits.h"

#include <gtest/gtest.h>

#include "fl_server/sessions/client_sessions.h"
#include "fl_server/sessions/session.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;

constexpr BanLimits kOne{.allowed = 0, .first = milliseconds(100), .longest = std::chrono::hours(1)};
const SteadyTime kNow = SteadyTime() + std::chrono::hours(1);

PeerIdentity peer(std::string proven, std::string claimed, std::string origin = "10.0.0.1") {
  return {std::move(proven), std::move(claimed), std::move(origin), false};
}

TEST(PeerLimits, CountsUnderTheProvenName) {
  PeerLimits limits(kOne, {}, 2);
  const auto ban = limits.violation(peer("a", "b"), kNow);
  ASSERT_TRUE(ban);
  EXPECT_EQ(ban->offender, "'a'");
  EXPECT_EQ(ban->violations, 1u);
  EXPECT_EQ(ban->ms, 100u);
  EXPECT_EQ(limits.ban_ms(peer("a", "", "10.0.0.2"), kNow), 100u) << "at any address";
  EXPECT_EQ(limits.ban_ms(peer("", "a"), kNow), 0u) << "a claim of the name";
}

TEST(PeerLimits, BansAClaimedNameAtItsOwnAddressOnly) {
  PeerLimits limits(kOne, {}, 2);
  EXPECT_EQ(limits.violation(peer("", "b"), kNow)->offender, "'b' at 10.0.0.1");
  EXPECT_GT(limits.ban_ms(peer("", "b"), kNow), 0u);
  EXPECT_EQ(limits.ban_ms(peer("", "b", "10.0.0.2"), kNow), 0u);
  EXPECT_EQ(limits.ban_ms(peer("b", "b"), kNow), 0u) << "the owner of the name";
}

TEST(PeerLimits, BansAnAddressUnlessClientsUseIt) {
  PeerLimits limits(kOne, {}, 2);
  limits.move(0, "10.0.0.9");
  EXPECT_FALSE(limits.violation(peer("", "", "10.0.0.9"), kNow));
  EXPECT_EQ(limits.violation(peer("", ""), kNow)->offender, "10.0.0.1");
  EXPECT_EQ(limits.ban_ms("10.0.0.1", kNow), 100u);
  EXPECT_EQ(limits.ban_ms("10.0.0.1", kNow + milliseconds(101)), 0u);
  limits.move(1, "10.0.0.1");
  EXPECT_EQ(limits.ban_ms("10.0.0.1", kNow), 0u) << "a client joined from there";
  limits.move(0, "10.0.0.2");
  EXPECT_TRUE(limits.violation(peer("", "", "10.0.0.9"), kNow)) << "no client is there any more";
}

TEST(PeerLimits, DoesNotBanAChannelByItsAddress) {
  PeerLimits limits(kOne, {}, 2);
  PeerIdentity channel = peer("", "");
  channel.is_channel = true;
  EXPECT_FALSE(limits.violation(channel, kNow));
}

TEST(PeerLimits, BansAnAddressForAMinuteAtMost) {
  BanLimits hours = kOne;
  hours.first = std::chrono::hours(1);
  PeerLimits limits(hours, {}, 1);
  EXPECT_EQ(limits.violation(peer("", ""), kNow)->ms, 60'000u);
  EXPECT_EQ(limits.violation(peer("", "b"), kNow)->ms, 3'600'000u);
}

// The sessions of this fixture are never constructed: only their addresses are compared.
class ClientSessionsTest : public ::testing::Test {
 protected:
  Session& session(int k) { return reinterpret_cast<Session*>(places_)[k]; }
  ClientSessions clients{2};

 private:
  alignas(Session) std::byte places_[3 * sizeof(Session)];
};

TEST_F(ClientSessionsTest, ReplacesASessionOnlyAtTheJoinOfAnother) {
  EXPECT_EQ(clients.add(0, session(0)), nullptr);
  EXPECT_EQ(clients.promote(0, session(0)), nullptr);
  clients.set_connected(0, true);
  EXPECT_EQ(clients.add(0, session(1)), nullptr);
  EXPECT_EQ(clients.current(0), &session(0));
  EXPECT_EQ(clients.add(0, session(2)), &session(1)) << "two candidates: the older one goes";
  EXPECT_EQ(clients.promote(0, session(2)), &session(0));
  EXPECT_EQ(clients.candidate(0), nullptr);
  EXPECT_EQ(clients.connected_count(), 0u) << "until it is counted";
  clients.set_connected(0, true);
  EXPECT_FALSE(clients.remove(0, session(0)));
  EXPECT_EQ(clients.connected_count(), 1u);
  EXPECT_TRUE(clients.remove(0, session(2)));
  EXPECT_EQ(clients.connected_count(), 0u);
}

TEST_F(ClientSessionsTest, LetsTheCandidateServeWhenTheSessionIsLost) {
  clients.add(1, session(0));
  clients.add(1, session(1));
  EXPECT_TRUE(clients.remove(1, session(0)));
  EXPECT_EQ(clients.current(1), nullptr);
  EXPECT_TRUE(clients.promote_candidate(1));
  EXPECT_EQ(clients.current(1), &session(1));
  EXPECT_TRUE(clients.remove(1, session(1)));
  EXPECT_FALSE(clients.promote_candidate(1));
}

}  // namespace
}  // namespace gradwire
