// Folders for temporary files, and the folders that killed processes left.
#include "experiments/cli/support/scratch_folder.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/support/data_files.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

class ScratchFolders : public ::testing::Test {
 protected:
  ScratchFolders() {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", parent_.path().c_str(), 1);
  }
  ~ScratchFolders() override {
    if (before_.empty()) {
      ::unsetenv("TMPDIR");
    } else {
      ::setenv("TMPDIR", before_.c_str(), 1);
    }
  }
  // Makes a folder as a killed process leaves it: with a lock file that no process has locked.
  fs::path left(const std::string& name, std::chrono::minutes age = std::chrono::minutes(5)) {
    const fs::path folder = parent_.path() / name;
    fs::create_directories(folder / "state");
    std::ofstream(folder / "state" / "log") << "rounds";
    std::ofstream(folder / "lock") << "1";
    fs::last_write_time(folder / "lock", fs::file_time_type::clock::now() - age);
    return folder;
  }

  TemporaryFolder parent_;

 private:
  std::string before_;
};

TEST_F(ScratchFolders, AreRemovedWithTheirContents) {
  fs::path path;
  {
    const ScratchFolder folder;
    path = folder.path();
    EXPECT_EQ(path.parent_path(), parent_.path());
    std::ofstream(path / "file") << "text";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ScratchFolders, AreRemovedAfterAKillWhenTheNextIsMade) {
  const fs::path folder = left("gradwire-a1B2c3");
  const ScratchFolder next;
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(ScratchFolders, StayWhileTheirProcessLives) {
  const ScratchFolder living;
  fs::last_write_time(living.path() / "lock", fs::file_time_type::clock::now() - std::chrono::hours(100));
  const fs::path young = left("gradwire-youngX", std::chrono::minutes(0));
  const ScratchFolder next;
  EXPECT_TRUE(fs::exists(living.path()));
  EXPECT_TRUE(fs::exists(young)) << "its process may be about to lock it";
}

TEST_F(ScratchFolders, StayIfTheyHaveAnotherNameOrNoLock) {
  const fs::path named = left("gradwire-results"), other = left("other-a1B2c3"),
                 bare = left("gradwire-a1B2c4");
  fs::remove(bare / "lock");
  const ScratchFolder next;
  for (const fs::path& folder : {named, other, bare}) EXPECT_TRUE(fs::exists(folder)) << folder;
}

}  // namespace
}  // namespace gradwire
