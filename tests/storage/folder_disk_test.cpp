// Tests of a folder as a disk: foreign files in it, and the lock of the process that uses it.
#include "storage/folder_disk.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <string_view>
#include <sys/stat.h>

#include "storage/atomic_file.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

Status write(FolderDisk& disk, const std::string& name, std::string_view text) {
  return disk.write(name, std::span(&text, 1));
}

TEST(FolderLock, HoldsAFolderWhoseFileWasRemoved) {
  const TemporaryFolder folder;
  {
    const FolderLock lock(folder.path());
    EXPECT_EQ(lock_holder(folder.path()), std::to_string(::getpid()));
    fs::remove(folder.path() / "lock");
    EXPECT_THROW(FolderLock(folder.path()), std::runtime_error);
    EXPECT_FALSE(fs::exists(folder.path() / "lock")) << "a refused process makes no file";
    EXPECT_EQ(lock_holder(folder.path()), "unknown");
    fs::rename(folder.path(), folder.path().string() + "-moved");
    EXPECT_THROW(FolderLock(folder.path().string() + "-moved"), std::runtime_error);
    fs::rename(folder.path().string() + "-moved", folder.path());
  }
  EXPECT_EQ(lock_holder(folder.path()), std::nullopt);
  EXPECT_NO_THROW(FolderLock(folder.path()));
}

TEST(FolderLock, FollowsNoSymbolicLink) {
  const TemporaryFolder folder;
  const fs::path other = folder.write("other", "precious");
  fs::create_directory(folder.path() / "state");
  fs::create_symlink(other, folder.path() / "state" / "lock");
  try {
    const FolderLock lock(folder.path() / "state");
    FAIL() << "it followed the link";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("state/lock: cannot be created: it is a symbolic link"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(read_file(other), "precious");
}

TEST(FolderDisk, ReplacesLinksInPlaceOfItsDrafts) {
  const TemporaryFolder folder;
  const fs::path other = folder.write("other", "precious"), state = folder.path() / "state";
  fs::create_directory(state);
  fs::create_symlink(other, state / "model.bin.new");
  fs::create_symlink(other, state / "ckpt.new");
  write_whole(state / "model.bin", "model");
  FolderDisk disk(state);
  int left = 1;
  ASSERT_TRUE(disk.write_chunks("ckpt.new", [&] { return std::string_view(left-- > 0 ? "chunk" : ""); }));
  EXPECT_EQ(read_file(other), "precious");
  EXPECT_EQ(read_file(state / "model.bin"), "model");
  EXPECT_EQ(read_file(state / "ckpt.new"), "chunk");
  fs::create_symlink(other, state / "log.bin");
  const std::string_view record = "record";
  const Status appended = disk.append("log.bin", std::span(&record, 1));
  ASSERT_FALSE(appended);
  EXPECT_NE(appended.error().message.find("it is a symbolic link"), std::string::npos)
      << appended.error().message;
  EXPECT_EQ(read_file(other), "precious");
}

TEST(FolderDisk, DoesNotWaitForThePeerOfAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() / "model.bin.new").c_str(), 0600), 0);
  FolderDisk disk(folder.path());
  EXPECT_TRUE(disk.read("model.bin.new"));
  const Status written = write(disk, "model.bin.new", "model");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("it is a pipe"), std::string::npos) << written.error().message;
}

// After a lazy unmount, for example, the disk must not write to the folder below the mount point.
TEST(FolderDisk, WritesNothingIntoADifferentFolderOfTheSameName) {
  const TemporaryFolder folder;
  const fs::path state = folder.path() / "state", mounted = folder.path() / "mounted";
  fs::create_directory(state);
  FolderDisk disk(state);
  const std::string_view record = "record";
  ASSERT_TRUE(disk.append("log", std::span(&record, 1)));
  fs::rename(state, mounted);
  fs::create_directory(state);
  for (const Status& status :
       {disk.append("log", std::span(&record, 1)), write(disk, "model.bin.new", "model"),
        disk.rename("a", "b"), disk.remove("a")}) {
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("is no longer the same folder"), std::string::npos)
        << status.error().message;
  }
  EXPECT_TRUE(fs::is_empty(state));
  fs::remove(state);
  EXPECT_FALSE(disk.append("log", std::span(&record, 1)));
  fs::rename(mounted, state);
  EXPECT_TRUE(disk.append("log", std::span(&record, 1)));
  EXPECT_EQ(read_file(state / "log"), "recordrecord");
}

}  // namespace
}  // namespace gradwire
