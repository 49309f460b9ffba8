// Tests of the removal of journals, and of journals of another version.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/storage/journal_counter.h"
#include "tests/storage/simulated_disk.h"
#include "tests/storage/snapshot_version.h"

namespace gradwire {
namespace {

void put_file(Disk& disk, const std::string& name) {
  const std::string_view text = "foreign";
  ASSERT_TRUE(disk.write(name, std::span(&text, 1)));
}

TEST(Journal, RemovesWhatItWroteAndNothingElse) {
  const std::vector<std::string> others = {"ckpt-000000000005.txt", "ckpt-1.bin",
                                           "ckpt-best.bin.new",     "log-2024.bin",
                                           "log-of-mine.corrupt",   "metrics.csv"};
  SimulatedDisk disk;
  for (const std::string& name : others) put_file(disk, name);
  Counter counter(disk, Durability::kProcess);
  count_to(counter, 25, 10);
  disk.contents("ckpt-000000000020.bin")[3] ^= 1;
  Counter next(disk, Durability::kProcess);
  ASSERT_TRUE(next.recover());
  EXPECT_EQ(next.count, 25u);
  EXPECT_TRUE(*next.journal().is_there());
  const Status removed = next.journal().remove();
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(*disk.list(), others);
  EXPECT_FALSE(*next.journal().is_there());
}

TEST(Journal, MovesWhatItWroteAndNothingElse) {
  SimulatedDisk disk;
  put_file(disk, "log-2024.bin");
  Counter counter(disk, Durability::kProcess);
  count_to(counter, 25, 10);
  const std::size_t before = disk.list()->size();
  ASSERT_TRUE(counter.journal().move_into("before"));
  EXPECT_FALSE(*counter.journal().is_there());
  const std::vector<std::string> names = *disk.list();
  EXPECT_EQ(names.size(), before);
  for (const std::string& name : names)
    EXPECT_EQ(name.starts_with("before/"), name != "log-2024.bin") << name;
}

// Counts to 25, with a damaged snapshot that is set aside. Then removes the journal and crashes in call
// `call` of the disk. Returns false if the removal completed before.
bool crash_while_removing(SimulatedDisk& disk, std::uint64_t call) {
  Counter counter(disk, Durability::kProcess);
  count_to(counter, 25, 10);
  disk.contents("ckpt-000000000020.bin")[3] ^= 1;
  Counter next(disk, Durability::kProcess);
  EXPECT_TRUE(next.recover());
  disk.crash_at = disk.calls() + call;
  try {
    EXPECT_TRUE(next.journal().remove());
  } catch (const SimulatedCrash&) {
    return true;
  }
  return false;
}

TEST(Journal, IsWholeOrGoneWhereverItsRemovalEnds) {
  for (const bool power : {false, true})
    for (std::uint64_t call = 0;; ++call) {
      SimulatedDisk disk(call + 1);
      put_file(disk, "metrics.csv");
      const bool crashed = crash_while_removing(disk, call);
      power ? disk.lose_power() : disk.lose_process();
      Counter next(disk, Durability::kProcess);
      const Result<bool> there = next.journal().is_there();
      const Result<bool> found = next.recover();
      ASSERT_TRUE(found) << "call " << call << ": " << found.error().message;
      EXPECT_EQ(*found, *there);
      EXPECT_EQ(next.count, *found ? 25u : 0u);
      if (!*found) {
        EXPECT_EQ(*disk.list(), std::vector<std::string>{"metrics.csv"}) << "call " << call;
      }
      count_to(next, 40, 10);
      Counter last(disk, Durability::kProcess);
      ASSERT_TRUE(last.recover());
      EXPECT_EQ(last.count, 40u);
      if (!crashed) break;
      ASSERT_LT(call, 100u);
    }
}

TEST(Journal, RemovesNothingWithoutAMarker) {
  SimulatedDisk disk;
  put_file(disk, "log-000000000003.bin");
  const Status removed = Journal(disk, Durability::kProcess).remove();
  ASSERT_FALSE(removed);
  EXPECT_NE(removed.error().message.find("log-000000000003.bin has the name of a run's file"),
            std::string::npos)
      << removed.error().message;
  EXPECT_EQ(disk.list()->size(), 1u);
}

TEST(Journal, RefusesAnotherVersionInOneLineAndKeepsIt) {
  for (const char digit : {'1', '3'}) {
    SimulatedDisk disk;
    Counter counter(disk, Durability::kProcess);
    count_to(counter, 25, 10);
    for (const char* name : {"ckpt-000000000000.bin", "ckpt-000000000010.bin", "ckpt-000000000020.bin"})
      make_of_version(disk.contents(name), digit);
    const std::vector<std::string> before = *disk.list();
    Counter next(disk, Durability::kProcess);
    const Result<bool> found = next.recover();
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().message,
              "ckpt-000000000020.bin is from another version of gradwire; use that version, or choose "
              "another folder");
    EXPECT_EQ(*disk.list(), before);
    EXPECT_EQ(next.notes, "");
  }
}

TEST(Journal, TreatsAFlippedVersionAsDamageAndUsesThePreviousSnapshot) {
  SimulatedDisk disk;
  Counter counter(disk, Durability::kProcess);
  count_to(counter, 25, 10);
  disk.contents("ckpt-000000000020.bin")[7] = '1';
  EXPECT_EQ(recovered(disk), 25u);
}

}  // namespace
}  // namespace gradwire
