#include "fl_client/pulse.h"

#include <gtest/gtest.h>

namespace gradwire {
namespace {

using namespace std::chrono_literals;

TEST(Pulse, IsAliveUntilAWaitTakesTooLong) {
  const Pulse::Clock::time_point now{1000s};
  Pulse pulse;
  EXPECT_TRUE(pulse.is_alive(now + 24h)) << "work has no limit";
  pulse.wait(5s, now);
  EXPECT_TRUE(pulse.is_alive(now + 5s));
  EXPECT_FALSE(pulse.is_alive(now + 5001ms));
  pulse.wait(5s, now + 4s);
  EXPECT_TRUE(pulse.is_alive(now + 9s));
  EXPECT_FALSE(pulse.is_alive(now + 9001ms));
  pulse.work();
  EXPECT_TRUE(pulse.is_alive(now + 24h));
}

}  // namespace
}  // namespace gradwire
