#include "report/service_notices.h"

#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "tests/support/data_files.h"
#include "tests/support/notice_socket.h"

namespace gradwire {
namespace {

TEST(ServiceNotices, SendReadyAndTheFirstLineOfAStatus) {
  const TemporaryFolder folder;
  for (const std::string& address :
       {(folder.path() / "notify").string(), "@gradwire-notices-" + std::to_string(::getpid())}) {
    NoticeSocket manager(address);
    ASSERT_TRUE(manager.is_bound()) << address;
    ServiceNotices notices;
    notices.ready();
    notices.status("joined as client 0 of 3\nWATCHDOG=1");
    EXPECT_EQ(manager.notices(), (std::vector<std::string>{"READY=1", "STATUS=joined as client 0 of 3"}));
  }
}

TEST(ServiceNotices, FeedTheWatchdogWhileTheProgramIsAlive) {
  const TemporaryFolder folder;
  NoticeSocket manager((folder.path() / "notify").string());
  ::setenv("WATCHDOG_USEC", "2000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  std::atomic<bool> is_alive{true};
  std::atomic<int> asked{0};
  ServiceNotices notices;
  notices.begin_watch([&] {
    ++asked;
    return is_alive.load();
  });
  EXPECT_TRUE(eventually([&] { return manager.count("WATCHDOG=1") >= 3; }));
  is_alive = false;
  const int then = asked;
  EXPECT_TRUE(eventually([&] { return asked > then + 1; }));
  const std::size_t fed = manager.count("WATCHDOG=1");
  EXPECT_TRUE(eventually([&] { return asked > then + 4; }));
  EXPECT_EQ(manager.count("WATCHDOG=1"), fed);
}

TEST(ServiceNotices, StartNoThreadForTheWatchdogOfAnotherProcess) {
  const TemporaryFolder folder;
  NoticeSocket manager((folder.path() / "notify").string());
  ::setenv("WATCHDOG_USEC", "2000", 1);
  ::setenv("WATCHDOG_PID", "1", 1);
  std::atomic<bool> asked{false};
  {
    ServiceNotices notices;
    notices.begin_watch([&] { return asked = true; });
  }
  EXPECT_FALSE(asked);
}

TEST(ServiceNotices, DoNothingWithoutAManager) {
  const TemporaryFolder folder;
  const std::string long_name = (folder.path() / std::string(200, 'n')).string();
  for (const std::string& address : {std::string(), std::string("x"), std::string("relative"),
                                     std::string("@"), long_name, (folder.path() / "nobody").string()}) {
    ::setenv("NOTIFY_SOCKET", address.c_str(), 1);
    for (const char* limit : {"", "x", "-1", "0", "1"}) {
      ::setenv("WATCHDOG_USEC", limit, 1);
      ServiceNotices notices;
      notices.ready();
      notices.status("a line");
      notices.begin_watch([] { return true; });
    }
  }
  ::unsetenv("NOTIFY_SOCKET");
  ::unsetenv("WATCHDOG_USEC");
}

TEST(ServiceNotices, SurviveAManagerThatEnds) {
  const TemporaryFolder folder;
  auto manager = std::make_unique<NoticeSocket>((folder.path() / "notify").string());
  ServiceNotices notices;
  manager.reset();
  notices.ready();
  notices.status("a line");
}

}  // namespace
}  // namespace gradwire
