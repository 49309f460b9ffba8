#include "storage/journal.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "storage/folder_disk.h"
#include "tests/storage/journal_counter.h"
#include "tests/storage/simulated_disk.h"
#include "tests/support/data_files.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

TEST(Journal, RecoversEveryRecordSinceTheNewestSnapshot) {
  SimulatedDisk disk;
  Counter none(disk, Durability::kProcess);
  const Result<bool> found = none.recover();
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found) << "an empty folder holds nothing";
  Counter counter(disk, Durability::kProcess);
  count_to(counter, 35, 10);
  EXPECT_EQ(recovered(disk), 35u);
}

TEST(Journal, KeepsThreeGenerationsAndTheLogsBetweenThem) {
  SimulatedDisk disk;
  Counter counter(disk, Durability::kProcess);
  count_to(counter, 95, 10);
  EXPECT_EQ(*disk.list(),
            (std::vector<std::string>{"ckpt-000000000070.bin", "ckpt-000000000080.bin",
                                      "ckpt-000000000090.bin", "journal", "log-000000000070.bin",
                                      "log-000000000080.bin", "log-000000000090.bin"}));
}

TEST(Journal, UsesThePreviousGenerationsIfTheNewestAreDamagedAndLosesNothing) {
  for (int damaged = 1; damaged <= 2; ++damaged) {
    SimulatedDisk disk;
    Counter counter(disk, Durability::kProcess);
    count_to(counter, 95, 10);
    disk.contents("ckpt-000000000090.bin")[20] ^= 4;
    if (damaged == 2) disk.contents("ckpt-000000000080.bin").resize(30);
    Counter next(disk, Durability::kProcess);
    ASSERT_TRUE(next.recover());
    EXPECT_EQ(next.count, 95u);
    EXPECT_NE(next.notes.find("ckpt-000000000090.bin cannot be used"), std::string::npos) << next.notes;
    EXPECT_NO_THROW(disk.contents("ckpt-000000000090.bin.corrupt")) << "damaged files are kept";
    count_to(next, 120, 10);
    EXPECT_EQ(recovered(disk), 120u);
  }
}

TEST(Journal, ReportsThatNothingOfARunCanBeRead) {
  SimulatedDisk disk;
  Counter counter(disk, Durability::kProcess);
  count_to(counter, 5, 10);
  disk.contents("ckpt-000000000000.bin")[0] ^= 1;
  disk.contents("ckpt-000000000000.copy").resize(9);
  const Result<bool> found = Counter(disk, Durability::kProcess).recover();
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("no snapshot of the run can be read"), std::string::npos);
}

TEST(Journal, ReplacesASingleSnapshotByItsCopy) {
  for (const std::uint64_t rounds : {0, 5}) {
    SimulatedDisk disk;
    Counter counter(disk, Durability::kProcess);
    ASSERT_TRUE(counter.snapshot());
    count_to(counter, rounds, 10);
    disk.contents("ckpt-000000000000.bin").resize(11);
    Counter next(disk, Durability::kProcess);
    const Result<bool> found = next.recover();
    ASSERT_TRUE(found && *found) << next.notes;
    EXPECT_EQ(next.count, rounds);
    EXPECT_NE(next.notes.find("ckpt-000000000000.bin cannot be used"), std::string::npos) << next.notes;
    ASSERT_TRUE(next.snapshot());
    count_to(next, 21, 10);
    const auto files = *disk.list();
    EXPECT_EQ(std::count(files.begin(), files.end(), "ckpt-000000000000.copy"), 0) << "two more are there";
    EXPECT_EQ(recovered(disk), 21u);
  }
}

TEST(Journal, WarnsOfAnEmptyLog) {
  SimulatedDisk disk;
  Counter counter(disk, Durability::kProcess);
  count_to(counter, 5, 10);
  disk.contents("log-000000000000.bin").clear();
  Counter next(disk, Durability::kProcess);
  ASSERT_TRUE(next.recover());
  EXPECT_EQ(next.count, 0u);
  EXPECT_NE(next.notes.find("log-000000000000.bin is empty"), std::string::npos) << next.notes;
}

TEST(Journal, WritesARecordAsMagicChecksumNumberLengthAndBytes) {
  SimulatedDisk disk;
  Counter counter(disk, Durability::kProcess);
  count_to(counter, 1, 100);
  const std::string log = disk.contents("log-000000000000.bin"), bytes = "count 0 of life 1";
  ASSERT_EQ(log.size(), 24 + bytes.size());
  EXPECT_EQ(log.substr(24), bytes);
  std::uint32_t crc = 0;
  std::uint64_t number = 1, length = 0;
  std::memcpy(&crc, log.data() + 4, sizeof crc);
  std::memcpy(&number, log.data() + 8, sizeof number);
  std::memcpy(&length, log.data() + 16, sizeof length);
  EXPECT_EQ(number, 0u);
  EXPECT_EQ(length, bytes.size());
  EXPECT_EQ(crc, crc32c(std::as_bytes(std::span(log).subspan(8))));
}

TEST(Journal, EndsAtTheFirstDamagedRecordWhereverItIs) {
  SimulatedDisk whole;
  Counter counter(whole, Durability::kProcess);
  count_to(counter, 8, 100);
  const std::string log = whole.contents("log-000000000000.bin");
  const std::size_t record = log.size() / 8;
  for (std::size_t at = 0; at < log.size(); ++at) {
    // The copies share files, so contents are replaced, not changed.
    SimulatedDisk cut = whole, flipped = whole;
    const std::string_view part = std::string_view(log).substr(0, at);
    ASSERT_TRUE(cut.write("log-000000000000.bin", std::span(&part, 1)));
    EXPECT_EQ(recovered(cut), at / record) << at;
    std::string damaged = log;
    damaged[at] ^= 16;
    const std::string_view view = damaged;
    ASSERT_TRUE(flipped.write("log-000000000000.bin", std::span(&view, 1)));
    EXPECT_EQ(recovered(flipped), at / record) << at;
  }
}

TEST(Snapshot, DetectsEveryFlippedByteAndEveryTruncation) {
  std::string big(scaled(64 << 10), '\0'), frame, bytes;
  for (std::size_t k = 0; k < big.size(); ++k) big[k] = static_cast<char>(k * k >> 7);
  const Section sections[] = {{1, "about"}, {2, big}, {3, ""}};
  for (const std::string_view segment : pack_snapshot(42, sections, frame)) bytes += segment;
  const auto whole = unpack_snapshot(42, bytes);
  ASSERT_TRUE(whole);
  EXPECT_EQ((*whole)[1].bytes, big);
  EXPECT_FALSE(unpack_snapshot(43, bytes)) << "a file under another's name";
  EXPECT_FALSE(unpack_snapshot(42, bytes + '\0'));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    ASSERT_FALSE(unpack_snapshot(42, std::string_view(bytes).substr(0, at))) << at;
    bytes[at] ^= static_cast<char>(1 << at % 8);
    ASSERT_FALSE(unpack_snapshot(42, bytes)) << at;
    bytes[at] ^= static_cast<char>(1 << at % 8);
  }
}

// Crashes in the middle of call `at` and again during recovery. Returns false if a committed record is lost.
bool survives(SimulatedDisk& disk, Durability durability, std::uint64_t at, std::uint64_t again) {
  std::uint64_t committed = 0;
  const auto crash = [&] { durability == Durability::kPower ? disk.lose_power() : disk.lose_process(); };
  disk.crash_at = at;
  for (int life = 0; life < 3; ++life) {
    try {
      Counter counter(disk, durability);
      const Result<bool> found = counter.recover();
      if (!found) return false;
      if (counter.count < committed || counter.count > committed + 1) return false;
      if (!counter.snapshot()) return false;
      committed = std::max(committed, counter.count);
      while (counter.count < 30) {
        if (counter.count % 7 == 0 && !counter.snapshot()) return false;
        if (!counter.add()) return false;
        committed = counter.count;
      }
      return true;
    } catch (const SimulatedCrash&) {
      crash();
      disk.crash_at = disk.calls() + again;
    }
  }
  disk.crash_at = UINT64_MAX;
  return true;
}

TEST(Journal, LosesNoCommittedRecordWhereverTheProcessOrThePowerFails) {
  for (const Durability durability : {Durability::kProcess, Durability::kPower}) {
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
      SimulatedDisk disk(seed);
      ASSERT_TRUE(survives(disk, durability, seed % 100, seed % 13)) << "seed " << seed;
    }
  }
}

// Loses power repeatedly. With kProcess that may cost records, but none before a finished snapshot, and no
// lost record comes back later. Returns false if this does not hold.
bool continues_from_its_snapshot(SimulatedDisk& disk, std::uint64_t at, std::uint64_t again) {
  std::uint64_t sure = 0;
  bool any = false;
  disk.crash_at = at;
  for (int life = 1; life <= 4; ++life) {
    try {
      Counter counter(disk, Durability::kProcess);
      counter.life = life;
      const Result<bool> found = counter.recover();
      if (!found || counter.went_back || counter.count < sure || (any && !*found)) return false;
      const auto snapshot = [&] {
        if (!counter.snapshot()) return false;
        sure = counter.count;
        return any = true;
      };
      if (!snapshot()) return false;
      while (counter.count < 30) {
        if (counter.count % 7 == 0 && !snapshot()) return false;
        if (!counter.add()) return false;
      }
      if (life == 4) return true;
      disk.lose_power();
    } catch (const SimulatedCrash&) {
      disk.lose_power();
    }
    disk.crash_at = disk.calls() + again;
  }
  disk.crash_at = UINT64_MAX;
  return true;
}

TEST(Journal, ResumesFromItsLastSnapshotWithProcessDurabilityWhereverThePowerFails) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SimulatedDisk disk(seed);
    ASSERT_TRUE(continues_from_its_snapshot(disk, seed % 90, seed % 37)) << "seed " << seed;
  }
}

TEST(Journal, WouldLoseSnapshotsOfAProcessWithoutSyncingTheFolder) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimulatedDisk disk(seed);
    disk.forgets_folder_syncs = true;
    lost += !continues_from_its_snapshot(disk, seed % 90, seed % 37);
  }
  EXPECT_GT(lost, 0) << "the simulated disk is too kind";
}

TEST(Journal, WouldLoseRecordsWithoutSyncingTheFolder) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SimulatedDisk disk(seed);
    disk.forgets_folder_syncs = true;
    lost += !survives(disk, Durability::kPower, seed % 100, seed % 13);
  }
  EXPECT_GT(lost, 0) << "the simulated disk is too kind";
}

TEST(Journal, ReportsAFullDiskAndContinuesOnceThereIsRoom) {
  for (std::size_t capacity = 200; capacity < 1200; capacity += 7) {
    SimulatedDisk disk;
    disk.capacity = capacity;
    Counter counter(disk, Durability::kPower);
    if (!counter.snapshot()) continue;
    Status status = Unit{};
    while (status && counter.count < 100) status = counter.add();
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("No space left"), std::string::npos);
    disk.capacity = SIZE_MAX;
    EXPECT_EQ(recovered(disk), counter.count);
  }
}

TEST(FolderDisk, HoldsAJournalAndNamesTheFileThatCannotBeWritten) {
  const TemporaryFolder folder;
  FolderDisk disk(folder.path());
  Counter counter(disk, Durability::kPower);
  counter.padding = std::string(100000, 'x');
  count_to(counter, 35, 10);
  EXPECT_EQ(recovered(disk), 35u);
  FolderDisk nowhere(folder.path() / "nowhere");
  const std::string_view text = "x";
  const Status status = nowhere.write("file", std::span(&text, 1));
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("nowhere/file: cannot be written: No such file"), std::string::npos)
      << status.error().message;
}

TEST(FolderLock, RefusesTheSecondProcessAndNamesTheFirst) {
  const TemporaryFolder folder;
  {
    const FolderLock first(folder.path());
    try {
      const FolderLock second(folder.path());
      FAIL() << "two processes would write into one folder";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("is in use by process " + std::to_string(::getpid())),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_NO_THROW(FolderLock{folder.path()});
}

TEST(FolderLock, IsHeldByOneEvenIfHoldersRemoveTheFile) {
  const TemporaryFolder folder;
  std::atomic<int> holders = 0, held = 0, twice = 0;
  const auto hold = [&] {
    for (int k = 0; k < 100; ++k) {
      try {
        const FolderLock lock(folder.path());
        if (holders.fetch_add(1) != 0) ++twice;
        ++held;
        std::this_thread::yield();
        --holders;
        std::filesystem::remove(folder.path() / "lock");
      } catch (const std::runtime_error&) {  // in use
      }
    }
  };
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) threads.emplace_back(hold);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(held, 50);
  EXPECT_EQ(twice, 0);
}

}  // namespace
}  // namespace gradwire
