// Tests of the run history with damaged, locked and missing files: rows may be late or missing, but no call
// fails.
#include "fl_server/run_history/run_history.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <sys/resource.h>
#include <thread>

#include "tests/support/data_files.h"
#include "tests/support/eventually.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

const RunHistoryRun kRun{"00000000000000aa", "silo", "ef21", 2, "/runs/silo"};

RunProgress progress_after(std::uint32_t round) {
  RunProgress progress;
  progress.round = round;
  progress.totals.replies = 2;
  progress.totals.seconds = round;
  progress.totals.bits_up = 100.0 * round;
  progress.totals.bytes_up = 20 * round;
  return progress;
}

ClientInfo info(const std::string& name) {
  ClientInfo info;
  info.name = name;
  info.build = "gcc";
  info.kernels = "avx2";
  info.sample_count = 30;
  return info;
}

class RunHistoryTest : public ::testing::Test {
 protected:
  std::unique_ptr<RunHistory> open(const RunHistoryRun& run = kRun) {
    return std::make_unique<RunHistory>(file(), Durability::kProcess, run,
                                        [this](const std::string& line) { lines.push_back(line); });
  }
  // Records a run of two clients, from its first round to `last`.
  void run_rounds(RunHistory& run_history, std::uint32_t first, std::uint32_t last) {
    const std::vector<ClientId> used = {0, 1};
    for (std::uint32_t k = first; k <= last; ++k) run_history.round_done(progress_after(k), used);
  }
  void join_both(RunHistory& run_history) {
    run_history.client_joined(0, info("a"), "10.0.0.1:5");
    run_history.client_joined(1, info("b"), "10.0.0.2:5");
  }
  fs::path file() const { return folder.path() / "registry.sqlite3"; }
  std::int64_t ask(const char* sql) const {
    Database db(file(), Database::Access::kRead, 0);
    const std::int64_t answer = db.number(sql);
    EXPECT_EQ(db.message(), "") << sql;
    return answer;
  }
  RunHistoryContent seen() const {
    const auto found = read_run_history(file(), kRun.id, "");
    EXPECT_TRUE(found) << found.error().message;
    return found && *found ? **found : RunHistoryContent{};
  }

  TemporaryFolder folder;
  std::vector<std::string> lines;
};

TEST_F(RunHistoryTest, RecordsTheRunItsClientsAndItsRounds) {
  {
    const auto run_history = open();
    join_both(*run_history);
    run_history->began(7);
    RoundRecord record;
    record.loss = 0.5;
    run_history->evaluated(record);
    run_rounds(*run_history, 1, 3);
    record.round = 3;
    record.accuracy = 0.75;
    run_history->evaluated(record);
    run_history->client_gone(1, "no heartbeat");
    run_history->reply_unused(1);
    run_history->client_joined(1, info("b"), "10.0.0.2:6");
    run_history->ended("finished");
  }
  EXPECT_TRUE(lines.empty()) << lines[0];
  EXPECT_EQ(ask("SELECT count(*) FROM rounds"), 4);
  EXPECT_EQ(ask("SELECT bits_up FROM rounds WHERE round = 3"), 150) << "per client";
  EXPECT_EQ(ask("SELECT accuracy * 100 FROM rounds WHERE round = 3 AND seconds = 3"), 75);
  EXPECT_EQ(ask("SELECT count(*) FROM rounds WHERE loss IS NULL"), 2);
  EXPECT_EQ(ask("SELECT dim FROM runs WHERE outcome = 'finished' AND rounds = 3 AND ended >= began"), 7);
  const RunHistoryContent run = seen();
  ASSERT_EQ(run.clients.size(), 2u);
  const RunHistoryClient& b = run.clients[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.peer, "10.0.0.2:6");
  EXPECT_EQ(b.kernels, "avx2");
  EXPECT_EQ(b.samples, 30u);
  EXPECT_EQ(b.times_joined, 2u);
  EXPECT_EQ(b.times_lost, 1u);
  EXPECT_EQ(b.why_lost, "no heartbeat");
  EXPECT_EQ(b.replies_used, 3u);
  EXPECT_EQ(b.replies_unused, 1u);
  EXPECT_FALSE(b.connected) << "the run is over";
  EXPECT_LE(b.first_joined, b.last_lost);
  EXPECT_LE(b.last_lost, b.last_joined);
}

// The journal replays the rounds that the run history may lack.
TEST_F(RunHistoryTest, ReplacesRoundsOfAResumedRunAndCountsNoReplyTwice) {
  {
    const auto run_history = open();
    join_both(*run_history);
    run_history->began(7);
    run_rounds(*run_history, 1, 5);
  }
  {
    const auto run_history = open();
    run_rounds(*run_history, 3, 6);  // replayed from the journal
    run_history->resumed_after(6);
    join_both(*run_history);
    run_rounds(*run_history, 7, 8);
    run_history->ended("stopped");
  }
  EXPECT_EQ(ask("SELECT count(*) FROM rounds"), 8);
  EXPECT_EQ(ask("SELECT rounds FROM runs"), 8);
  EXPECT_EQ(seen().clients.at(0).replies_used, 8u);
  EXPECT_EQ(seen().clients.at(0).times_joined, 2u);
  EXPECT_EQ(seen().outcome, "stopped");
  {
    const auto run_history = open();
    run_history->resumed_after(4);  // after a loss of power
    run_rounds(*run_history, 5, 6);
  }
  EXPECT_EQ(ask("SELECT count(*) FROM rounds"), 6);
  EXPECT_EQ(seen().outcome, "");
  EXPECT_FALSE(seen().clients.at(0).connected) << "it has not returned";
}

TEST_F(RunHistoryTest, SettlesBeforeTheJournalForgets) {
  const auto run_history = open();
  run_rounds(*run_history, 1, 20'000);
  run_history->resumed_after(20'000);
  run_history->settle(std::chrono::seconds(20));
  EXPECT_EQ(ask("SELECT count(*) FROM rounds"), 20'000);
  Database other(file(), Database::Access::kWrite, 0);
  other.run("BEGIN IMMEDIATE");
  run_rounds(*run_history, 1, 10);
  run_history->settle(std::chrono::hours(1));  // returns because the file cannot be written
}

TEST_F(RunHistoryTest, StoresSeveralRunsInOneFile) {
  RunHistoryRun other = kRun;
  other.id = "00000000000000bb";
  other.folder = "/runs/other";
  {
    const auto one = open(), two = open(other);
    for (std::uint32_t k = 1; k <= 50; ++k) {
      run_rounds(*one, k, k);
      run_rounds(*two, k, k);
    }
  }
  EXPECT_TRUE(lines.empty()) << lines[0];
  EXPECT_EQ(ask("SELECT count(*) FROM runs"), 2);
  EXPECT_EQ(ask("SELECT count(*) FROM rounds"), 100);
}

TEST_F(RunHistoryTest, KeepsOneRunPerFolder) {
  open()->began(7);
  RunHistoryRun second = kRun, third = kRun;
  second.id = "00000000000000bb";
  third.id = "00000000000000cc";
  open(second)->ended("never_began");
  open(third)->began(7);
  EXPECT_EQ(ask("SELECT count(*) FROM runs"), 2);
  EXPECT_EQ(ask("SELECT count(*) FROM runs WHERE run = '00000000000000aa' AND outcome = 'replaced'"), 1);
  const auto last = read_run_history(file(), "", kRun.folder);
  ASSERT_TRUE(last && *last);
  EXPECT_EQ((*last)->id, third.id);
}

TEST_F(RunHistoryTest, LosesNoRoundAndLogsOneLineIfTheFileIsLocked) {
  open()->began(7);
  {
    Database other(file(), Database::Access::kWrite, 0);
    other.run("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    ASSERT_EQ(other.message(), "");
    const auto run_history = open();
    run_rounds(*run_history, 1, 1000);
    EXPECT_TRUE(eventually([&] {
      run_rounds(*run_history, 1001, 1001);
      return !lines.empty();
    }));
    other.clear();
  }
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("is locked by another program"), std::string::npos) << lines[0];
}

TEST_F(RunHistoryTest, WritesWaitingRowsOnceTheFileIsUnlocked) {
  open()->began(7);
  auto other = std::make_unique<Database>(file(), Database::Access::kWrite, 0);
  other->run("BEGIN IMMEDIATE");
  auto run_history = open();
  run_rounds(*run_history, 1, 999);
  EXPECT_TRUE(eventually([&] {
    run_rounds(*run_history, 1000, 1000);
    return !lines.empty();
  }));
  other.reset();
  run_history.reset();
  EXPECT_EQ(ask("SELECT count(*) FROM rounds"), 1000);
  EXPECT_EQ(lines.size(), 1u);
}

TEST_F(RunHistoryTest, DelaysTheServerOnlyBrieflyIfTheFileStaysLocked) {
  open()->began(7);
  Database other(file(), Database::Access::kWrite, 0);
  other.run("BEGIN IMMEDIATE");
  auto run_history = open();
  run_rounds(*run_history, 1, 10);
  run_history.reset();
}

TEST_F(RunHistoryTest, DropsTheOldestRoundsThatDoNotFit) {
  open()->began(7);
  auto other = std::make_unique<Database>(file(), Database::Access::kWrite, 0);
  other->run("BEGIN IMMEDIATE");
  auto run_history = open();
  constexpr std::uint32_t kRounds = RunHistory::kMostRounds + 1000;
  run_rounds(*run_history, 1, kRounds);
  other.reset();
  run_history.reset();
  EXPECT_GE(ask("SELECT count(*) FROM rounds"), static_cast<std::int64_t>(RunHistory::kMostRounds));
  EXPECT_EQ(ask("SELECT max(round) FROM rounds"), kRounds);
  // The run counts the dropped rounds as well.
  EXPECT_EQ(ask("SELECT rounds FROM runs"), kRounds);
}

TEST_F(RunHistoryTest, SetsAsideAFileThatIsNotADatabase) {
  folder.write("registry.sqlite3", "these are notes, and no database at all; there is enough of them");
  {
    const auto run_history = open();
    run_rounds(*run_history, 1, 3);
  }
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("it is now registry.sqlite3.corrupt"), std::string::npos) << lines[0];
  EXPECT_EQ(ask("SELECT count(*) FROM rounds"), 3);
  EXPECT_TRUE(read_file(file().string() + ".corrupt").starts_with("these are notes"));
}

// Wherever the file is damaged, nothing crashes, and the new rows are written, to this file or to a new one.
TEST_F(RunHistoryTest, LogsAtMostOneLineForDamageAnywhereInTheFile) {
  {
    const auto run_history = open();
    join_both(*run_history);
    run_rounds(*run_history, 1, 2000);
  }
  const std::string whole = read_file(file());
  ASSERT_GT(whole.size(), 50'000u);
  int set_aside = 0;
  for (std::size_t at = 0; at < whole.size(); at += whole.size() / 25) {
    const TemporaryFolder place;
    std::string bytes = whole;
    for (std::size_t k = at; k < std::min(at + 64, bytes.size()); ++k)
      bytes[k] = static_cast<char>(~bytes[k]);
    const fs::path damaged = place.write("registry.sqlite3", bytes);
    std::vector<std::string> said;
    {
      RunHistory run_history(damaged, Durability::kProcess, kRun,
                             [&](const std::string& line) { said.push_back(line); });
      join_both(run_history);
      run_rounds(run_history, 2001, 2010);
    }
    EXPECT_LE(said.size(), 1u) << "at " << at << ": " << said[0];
    set_aside += fs::exists(damaged.string() + ".corrupt") ? 1 : 0;
    Database db(damaged, Database::Access::kRead, 0);
    EXPECT_EQ(db.number("SELECT count(*) FROM rounds WHERE round > 2000"), 10) << "at " << at;
  }
  EXPECT_GT(set_aside, 12);
}

TEST_F(RunHistoryTest, SetsAsideAFileDamagedDuringARun) {
  {
    const auto run_history = open();
    run_rounds(*run_history, 1, 2000);
  }
  RunHistoryFile writer(file(), Durability::kProcess, kRun);
  ASSERT_TRUE(writer.rounds());
  // The change makes the writer read the file again.
  Database(file(), Database::Access::kWrite, 0).run("UPDATE runs SET name = 'x'");
  std::string bytes = read_file(file());
  std::fill(bytes.begin() + 4096, bytes.end(), '\xa5');
  std::ofstream(file(), std::ios::binary) << bytes;
  RunHistoryBatch batch;
  batch.rounds.push_back({.round = 2001});
  EXPECT_TRUE(writer.write(batch));
  EXPECT_NE(writer.take_note().find("is damaged"), std::string::npos);
  EXPECT_EQ(ask("SELECT count(*) FROM rounds"), 1);
}

TEST_F(RunHistoryTest, LeavesAFileOfALaterVersionUnchanged) {
  open()->began(7);
  {
    Database db(file(), Database::Access::kWrite, 0);
    db.run("PRAGMA user_version = 2");
  }
  {
    const auto run_history = open();
    run_rounds(*run_history, 1, 10);
  }
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("was made by a newer gradwire"), std::string::npos) << lines[0];
  EXPECT_EQ(ask("SELECT count(*) FROM rounds"), 0);
  const auto seen = read_run_history(file(), kRun.id, "");
  ASSERT_FALSE(seen);
  EXPECT_NE(seen.error().message.find("newer gradwire"), std::string::npos);
}

TEST_F(RunHistoryTest, LeavesADatabaseOfAnotherProgramUnchanged) {
  {
    Database db(file(), Database::Access::kWrite, 0);
    db.run("CREATE TABLE runs(x); INSERT INTO runs VALUES(5)");
  }
  const std::string before = read_file(file());
  run_rounds(*open(), 1, 10);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("belongs to another program"), std::string::npos) << lines[0];
  EXPECT_EQ(read_file(file()), before);
}

TEST_F(RunHistoryTest, LogsOneLineIfTheFileCannotBeWritten) {
  RunHistory run_history("/proc/no/such/folder/registry.sqlite3", Durability::kProcess, kRun,
                         [this](const std::string& line) { lines.push_back(line); });
  run_rounds(run_history, 1, 10);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("cannot be written (unable to open database file)"), std::string::npos) << lines[0];
}

TEST_F(RunHistoryTest, LogsOneLineAndKeepsRowsWhileTheDiskIsFull) {
  open()->began(7);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{60'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  auto run_history = open();
  run_rounds(*run_history, 1, 5000);
  ASSERT_TRUE(eventually([&] {
    run_rounds(*run_history, 5000, 5000);
    return !lines.empty();
  }));
  ::setrlimit(RLIMIT_FSIZE, &before);
  run_history.reset();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("cannot be written ("), std::string::npos) << lines[0];
  EXPECT_EQ(ask("SELECT count(*) FROM rounds"), 5000);
}

TEST_F(RunHistoryTest, ChangesNothingWhenReading) {
  {
    const auto run_history = open();
    join_both(*run_history);
    run_history->began(7);
  }
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.path())) names.insert(entry.path().filename());
    return names;
  };
  const std::string before = read_file(file());
  EXPECT_EQ(seen().clients.size(), 2u);
  EXPECT_EQ(files(), std::set<std::string>{"registry.sqlite3"});
  EXPECT_EQ(read_file(file()), before);
}

}  // namespace
}  // namespace gradwire
