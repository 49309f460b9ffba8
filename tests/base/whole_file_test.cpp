#include "base/whole_file.h"

#include <gtest/gtest.h>

namespace gradwire {
namespace {

TEST(WholeFile, IsReadOfProcWhichTellsNoSize) {
  const auto text = whole_file("/proc/self/status");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("Pid:"), text->npos);
}

TEST(WholeFile, EndsAfterAMegabyteOfAFileWithoutEnd) {
  const auto zeros = whole_file("/dev/zero");
  ASSERT_TRUE(zeros);
  EXPECT_EQ(zeros->size(), std::size_t{1} << 20);
}

TEST(WholeFile, IsAbsentIfThePathIsNoReadableFile) {
  EXPECT_FALSE(whole_file("/nowhere/at/all"));
  EXPECT_FALSE(whole_file("/"));
}

}  // namespace
}  // namespace gradwire
