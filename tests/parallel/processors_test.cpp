#include "parallel/processors.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <thread>

#include "tests/support/data_files.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

class CgroupQuota : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((folder_.path() / file).parent_path());
    folder_.write(file, text);
  }
  std::optional<double> quota(std::string_view membership) const {
    return cgroup_quota(membership, folder_.path());
  }
  TemporaryFolder folder_;
};

TEST_F(CgroupQuota, HasNoValueWithoutAGroupOrALimit) {
  EXPECT_FALSE(quota(""));
  EXPECT_FALSE(quota("0::/\n"));
  EXPECT_FALSE(quota("nonsense\n:\n::\n"));
  write("cpu.max", "max 100000\n");
  write("app/cpu.max", "max 100000\n");
  EXPECT_FALSE(quota("0::/app\n"));
}

TEST_F(CgroupQuota, UsesTheLeastOfAGroupAndItsAncestors) {
  write("a/cpu.max", "150000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  write("a/b/c/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota("0::/a/b/c\n"), 1.5);
  EXPECT_EQ(quota("0::/a/b\n"), 1.5);
  EXPECT_FALSE(quota("0::/other\n"));
}

TEST_F(CgroupQuota, ReadsTheRootOfTheMountInAContainer) {
  write("cpu.max", "50000 100000\n");
  EXPECT_EQ(quota("0::/\n"), 0.5);
  EXPECT_EQ(quota("0::/../outside\n"), 0.5);
}

TEST_F(CgroupQuota, ReadsTheProcessorControllerInVersionOne) {
  write("cpu,cpuacct/docker/x/cpu.cfs_quota_us", "300000\n");
  write("cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  write("cpu,cpuacct/docker/cpu.cfs_quota_us", "-1\n");
  write("cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("5:cpuset:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/y\n"), 3);
  EXPECT_FALSE(quota("4:cpu,cpuacct:/docker\n"));
  EXPECT_FALSE(quota("5:cpuset:/docker/x\n")) << "another controller";
  write("cpu/cpu.cfs_quota_us", "20000\n");
  write("cpu/cpu.cfs_period_us", "10000\n");
  EXPECT_EQ(quota("4:cpu:/hidden/by/the/mount\n"), 2);
}

TEST(UsableProcessors, FollowsTheAffinityOfTheProcess) {
  const unsigned before = usable_processors();
  EXPECT_GE(before, 1u);
  unsigned on_one = 0;
  std::thread([&] {
    cpu_set_t all, one;
    ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int k = 0; k < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++k)
      if (CPU_ISSET(k, &all)) CPU_SET(k, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);  // affects this thread only
    on_one = usable_processors();
  }).join();
  EXPECT_EQ(on_one, 1u);
  EXPECT_EQ(usable_processors(), before);
}

}  // namespace
}  // namespace gradwire
