// Tests of the files metrics.csv, model.bin and summary.json, and of their folder.
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "config/experiment_file.h"
#include "config/experiment_spec.h"
#include "report/columns.h"
#include "report/json.h"
#include "report/metrics_file.h"
#include "report/metrics_reader.h"
#include "report/results_dir.h"
#include "report/summary.h"
#include "storage/atomic_file.h"
#include "storage/model_file.h"
#include "tests/storage/simulated_disk.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

RoundRecord record() {
  RoundRecord r;
  r.round = 7;
  r.loss = 1.0 / 3;
  r.grad_norm_sq = 1e-28;
  r.accuracy = 0.1;
  r.bits_up = 12345.5;
  r.bits_down = 64;
  r.bits_up_paper = 6172.25;
  r.bits_down_paper = 32;
  r.bytes_up = 18446744073709551615u;
  r.bytes_down = 2;
  r.grad_calls = 3.25;
  r.replies = 20;
  r.seconds = 0.5;
  return r;
}

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Metrics, WriteSeventeenDigitsInTheColumnsOfTheHeader) {
  EXPECT_EQ(metrics_line(record()),
            "7,0.33333333333333331,9.9999999999999997e-29,0.10000000000000001,12345.5,64,"
            "18446744073709551615,2,3.25,20,0.5,6172.25,32,,,,0,0");
}

TEST(Metrics, LeaveTheCellOfAMissingAccuracyEmpty) {
  RoundRecord r = record();
  r.accuracy.reset();
  EXPECT_EQ(metrics_line(r).substr(0, 47), "7,0.33333333333333331,9.9999999999999997e-29,,1");
}

TEST(Metrics, AreReadBackToTheSameBits) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "metrics.csv";
  RoundRecord other = record();
  other.accuracy.reset();
  other.loss = std::nextafter(1.0, 2.0);
  other.grad_norm_sq = std::numeric_limits<double>::denorm_min();
  {
    MetricsFile out(file);
    out.write(record());
    out.write(other);
  }
  const auto records = read_metrics(file);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(metrics_line(records[0]), metrics_line(record()));
  EXPECT_EQ(metrics_line(records[1]), metrics_line(other));
  EXPECT_FALSE(records[1].accuracy);
}

TEST(Metrics, ShowEveryLineAsSoonAsItIsWritten) {
  const TemporaryFolder folder;
  MetricsFile out(folder.path() / "metrics.csv");
  out.write(record());
  EXPECT_EQ(read_metrics(folder.path() / "metrics.csv").size(), 1u);
}

TEST(Metrics, OmitAnUnfinishedLine) {
  const TemporaryFolder folder;
  const std::string line = metrics_line(record());
  const std::string text = metrics_header() + "\n" + line + "\n" + line.substr(0, 40);
  EXPECT_EQ(read_metrics(folder.write("metrics.csv", text)).size(), 1u);
}

TEST(Metrics, IgnoreColumnsOfLaterVersions) {
  const TemporaryFolder folder;
  const std::string text = metrics_header() + ",more\n" + metrics_line(record()) + ",5\n";
  EXPECT_EQ(metrics_line(read_metrics(folder.write("metrics.csv", text)).at(0)), metrics_line(record()));
}

TEST(Metrics, AreReadFromFilesWithoutPaperBits) {
  const TemporaryFolder folder;
  const std::string header = metrics_header(), line = metrics_line(record());
  const std::string text =
      header.substr(0, header.find(",bits_up_paper")) + "\n" + line.substr(0, line.find(",6172.25")) + "\n";
  const RoundRecord r = read_metrics(folder.write("metrics.csv", text)).at(0);
  EXPECT_EQ(r.seconds, 0.5);
  EXPECT_EQ(r.bits_up_paper, 0);
}

TEST(Metrics, MayLackSimulatedSeconds) {
  const TemporaryFolder folder;
  RoundRecord r = record();
  r.sim_seconds = 2.5;
  r.lyapunov = 0.25;
  const std::string header = metrics_header(), line = metrics_line(r);
  EXPECT_EQ(read_metrics(folder.write("new.csv", header + "\n" + line + "\n")).at(0).sim_seconds, 2.5);
  EXPECT_EQ(read_metrics(folder.write("new.csv", header + "\n" + line + "\n")).at(0).lyapunov, 0.25);
  const auto old = folder.write("old.csv", header.substr(0, header.find(",sim_seconds")) + "\n" +
                                               line.substr(0, line.find(",2.5,")) + "\n");
  EXPECT_EQ(read_metrics(old).at(0).sim_seconds, std::nullopt);
  EXPECT_EQ(read_metrics(old).at(0).bits_down_paper, 32);
}

TEST(Metrics, NameADamagedLine) {
  const TemporaryFolder folder;
  const auto file = folder.write("metrics.csv", metrics_header() + "\n" + metrics_line(record()) + "\n1,x\n");
  try {
    read_metrics(file);
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("metrics.csv:3: "), std::string::npos) << error.what();
  }
}

// The seed decides which bytes survive a power failure. With enough seeds every case occurs.
constexpr std::uint64_t kPowerLosses = 200;

TEST(Metrics, LoseNoRecordInPowerFailuresIfTheRunMustSurviveThem) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < kPowerLosses; ++seed)
    for (const Durability durability : {Durability::kPower, Durability::kProcess}) {
      const auto disk = std::make_shared<SimulatedDisk>(seed);
      MetricsFile out(disk, "metrics.csv", 0, durability);
      out.write(record());
      disk->lose_power();
      const std::string whole = metrics_header() + "\n" + metrics_line(record()) + "\n";
      const auto left = disk->read("metrics.csv");
      if (durability == Durability::kPower) {
        ASSERT_EQ(left ? *left : left.error().message, whole);
      } else if (!left || *left != whole) {
        ++lost;
      }
    }
  EXPECT_GT(lost, 0) << "the disk of this test must lose bytes";
}

TEST(Metrics, KeepLinesOfEarlierRoundsInAResumedRun) {
  const TemporaryFolder folder;
  const std::string text = metrics_header() + "\n" + metrics_line(record()) + "\n8,1\n9,1\n" + "10";
  const fs::path file = folder.write("metrics.csv", text);
  MetricsFile resumed(file, 9);
  EXPECT_EQ(read_file(file), text.substr(0, text.find("9,1")));
  MetricsFile restarted(file);
  EXPECT_EQ(read_file(file), metrics_header() + "\n");
}

TEST(Metrics, GiveTheLossOfRow0AlsoInAResumedRun) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "metrics.csv";
  {
    MetricsFile metrics(file);
    EXPECT_FALSE(metrics.loss_at_start());
    RoundRecord row = record();
    row.round = 0;
    row.loss = 0.1;
    metrics.write(row);
    row.round = 5;
    row.loss = 7;
    metrics.write(row);
    EXPECT_EQ(metrics.loss_at_start(), 0.1);
  }
  EXPECT_EQ(MetricsFile(file, 6).loss_at_start(), 0.1);
  EXPECT_EQ(MetricsFile(file, 0).loss_at_start(), std::nullopt);
}

TEST(Metrics, GiveTheLastRowInAResumedRun) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "metrics.csv";
  RoundRecord row = record();
  {
    MetricsFile metrics(file);
    EXPECT_FALSE(metrics.last());
    metrics.write(row);
    EXPECT_EQ(metrics_line(metrics.last().value()), metrics_line(row));
  }
  EXPECT_EQ(metrics_line(MetricsFile(file, row.round + 1).last().value()), metrics_line(row));
  row.round += 5;
  row.accuracy = std::nullopt;
  MetricsFile(file, row.round).write(row);
  EXPECT_EQ(metrics_line(MetricsFile(file, row.round + 1).last().value()), metrics_line(row));
  EXPECT_FALSE(MetricsFile(file, 0).last());
}

TEST(Metrics, ConvertLinesOfAnotherVersionInAResumedRun) {
  const TemporaryFolder folder;
  const std::string header = metrics_header(), line = metrics_line(record());
  const std::string old_header = header.substr(0, header.find(",bits_up_paper"));
  const std::string old_line = line.substr(0, line.find(",6172.25"));
  struct Case {
    std::string header, line, kept;
  };
  for (const Case& c :
       {Case{old_header, old_line, old_line + ",0,0,,,,0,0"}, Case{header + ",more", line + ",5", line},
        Case{"round,loss,grad_norm_sq", "7,0.5,2", "7,0.5,2,,0,0,0,0,0,0,0,0,0,,,,0,0"}}) {
    const std::string text = c.header + "\n" + c.line + "\n9,1\n";
    const fs::path file = folder.write("metrics.csv", text);
    const MetricsFile resumed(file, 9);
    EXPECT_EQ(resumed.set_aside(), "metrics.csv.before");
    EXPECT_EQ(read_file(folder.path() / "metrics.csv.before"), text);
    EXPECT_EQ(read_file(file), header + "\n" + c.kept + "\n");
    EXPECT_EQ(read_metrics(file).size(), 1u);
  }
  const fs::path file = folder.write("metrics.csv", "what,is,this\n1,2,3\n");
  EXPECT_EQ(MetricsFile(file, 9).set_aside(), "metrics.csv.before");
  EXPECT_EQ(read_file(file), header + "\n");
}

TEST(Results, KeepTheNewFileAfterAPowerFailure) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < kPowerLosses; ++seed)
    for (const bool careless : {false, true}) {
      SimulatedDisk disk(seed);
      write_whole(disk, "summary.json", "the old one");
      disk.forgets_folder_syncs = careless;
      write_whole(disk, "summary.json", "the new one");
      disk.lose_power();
      const auto left = disk.read("summary.json");
      if (!careless) {
        ASSERT_EQ(left ? *left : left.error().message, "the new one");
      } else if (!left || *left != "the new one") {
        ++lost;
      }
    }
  EXPECT_GT(lost, 0) << "the disk of this test must lose bytes";
}

TEST(Metrics, NeedAnExistingFolder) {
  EXPECT_THROW(MetricsFile("/no/such/folder/metrics.csv"), std::runtime_error);
}

TEST(Json, WritesARecordAsOneLineWithNullIfNotFinite) {
  RoundRecord r = record();
  r.loss = std::numeric_limits<double>::quiet_NaN();
  r.accuracy.reset();
  EXPECT_EQ(json_line(r),
            "{\"round\":7,\"loss\":null,\"grad_norm_sq\":1e-28,\"accuracy\":null,\"bits_up\":12345.5,"
            "\"bits_down\":64.0,\"bytes_up\":18446744073709551615,\"bytes_down\":2,\"grad_calls\":3.25,"
            "\"replies\":20,\"seconds\":0.5,\"bits_up_paper\":6172.25,\"bits_down_paper\":32.0,\"sim_"
            "seconds\":null,\"lyapunov\":null,\"lyapunov_bound\":null,\"evaluation_bytes_up\":0,"
            "\"evaluation_bytes_down\":0}");
}

template <class Real>
void check_model_round_trip() {
  const TemporaryFolder folder;
  const std::vector<Real> x = {Real(1) / 3, Real(-0.0), std::numeric_limits<Real>::denorm_min(),
                               std::numeric_limits<Real>::max()};
  const fs::path file = folder.path() / "model.bin";
  write_model<Real>(file, x);
  EXPECT_EQ(fs::file_size(file), 24 + x.size() * sizeof(Real) + 4);
  const std::vector<double> back = read_model(file);
  ASSERT_EQ(back.size(), x.size());
  for (std::size_t j = 0; j < x.size(); ++j) EXPECT_EQ(back[j], static_cast<double>(x[j]));
  EXPECT_TRUE(std::signbit(back[1]));
}

TEST(Model, IsReadBackExactlyInBothPrecisions) {
  check_model_round_trip<float>();
  check_model_round_trip<double>();
}

TEST(Model, HasTheBytesOfTheFormat) {
  const TemporaryFolder folder;
  write_model<float>(folder.path() / "model.bin", std::vector<float>{1.5f});
  const std::string bytes = read_file(folder.path() / "model.bin");
  EXPECT_EQ(bytes.substr(0, 28), std::string("GWMODEL1\x04\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\xC0\x3F", 28));
}

TEST(Model, DetectsEveryFlippedOrMissingByte) {
  const TemporaryFolder folder;
  write_model<double>(folder.path() / "model.bin", std::vector<double>{1, 2});
  const std::string good = read_file(folder.path() / "model.bin");
  for (std::size_t k = 0; k < good.size(); ++k) {
    std::string bad = good;
    bad[k] = static_cast<char>(bad[k] ^ 0x10);
    EXPECT_THROW(read_model(folder.write("bad.bin", bad)), std::runtime_error) << "byte " << k;
    EXPECT_THROW(read_model(folder.write("bad.bin", good.substr(0, k))), std::runtime_error)
        << "length " << k;
  }
  EXPECT_THROW(read_model(folder.path() / "absent.bin"), std::runtime_error);
}

TEST(Summary, HasConstantsTotalsAndProcesses) {
  const auto loaded = parse_experiment(
      "name = \"s\"\n[problem]\nkind = \"quadratic\"\ndim = 3\n[algorithm]\nname = \"gd\"\nstep_size = 0.5\n",
      "s.toml");
  const Smoothness smoothness{.L = 2, .mu = 0.25, .L_i = {1, 3}};
  Summary s;
  s.experiment = &loaded.experiment;
  s.theory = {2, 3, CompressorConstants::of_contractive(0.5, 1), &smoothness};
  s.transport = "tcp";
  s.warnings = {"a \"quoted\" warning"};
  s.outcome = Outcome::kReachedTarget;
  s.rounds = 9;
  s.last = record();
  s.processes = {{"server", 41, "/bin/gradwire-server"}};
  const std::string json = summary_json(s);
  for (const char* part :
       {"\"name\": \"s\"", "\"seed\": 1", "\"L\": 2", "\"L_max\": 3", "\"L_tilde\": 2.23606797749979",
        "\"alpha\": 0.5", "\"outcome\": \"reached_target\"", "\"rounds\": 9", "\"accuracy\": 0.1",
        "\"pid\": 41", "\"step_size\": 0.5", "\"a \\\"quoted\\\" warning\"", "\"transport\": \"tcp\"",
        "\"precision\": \"fp64\""})
    EXPECT_NE(json.find(part), std::string::npos) << part << " in\n" << json;
  s.last = std::nullopt;
  EXPECT_NE(summary_json(s).find("\"last\": null"), std::string::npos);
}

// ---- the folder ----

constexpr const char* kConfig = "name = \"mine\"\n[algorithm]\nname = \"gd\"\n";

fs::path old_results(const TemporaryFolder& folder, const std::string& config = kConfig) {
  folder.write("out/config.toml", config);
  folder.write("out/metrics.csv", metrics_header() + "\n");
  folder.write("out/notes.txt", "keep me");
  return folder.path() / "out";
}

TEST(ResultsDir, AppearsOnlyWhenPublished) {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "results/new";
  {
    ResultsDir results(out, "mine");
    std::ofstream(results.work() / "model.bin") << "x";
    EXPECT_FALSE(fs::exists(out));
    results.publish();
  }
  EXPECT_EQ(read_file(out / "model.bin"), "x");
  EXPECT_EQ(std::distance(fs::directory_iterator(out.parent_path()), {}), 1);
}

TEST(ResultsDir, LeavesNoFilesIfTheRunFails) {
  const TemporaryFolder folder;
  { const ResultsDir results(folder.path() / "results/out/", "mine"); }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(ResultsDir, KeepsTheFolderOfARunningProcessWithTheSameNumber) {
  const TemporaryFolder folder;
  const ResultsDir first(folder.path() / "run", "x");
  std::ofstream(first.work() / "metrics.csv") << "rows";
  const ResultsDir second(folder.path() / "run", "x");  // like a process in another container
  EXPECT_NE(first.work(), second.work());
  EXPECT_TRUE(std::filesystem::exists(first.work() / "metrics.csv"));
}

TEST(ResultsDir, RemovesFoldersOfKilledRunsButNotKeptOnes) {
  const TemporaryFolder folder;
  const auto left = [&](const std::string& number) {
    const auto made = folder.path() / (".run.unfinished-" + number);
    fs::create_directory(made);
    return made;
  };
  const auto early = left("1"), unlocked = left("2"), late = left("3"), kept = left("4"), used = left("5");
  std::ofstream(unlocked / "lock");
  std::ofstream(late / "lock") << "3";
  std::ofstream(late / "metrics.csv") << "round";
  std::ofstream(kept / "metrics.csv") << "round";
  const FolderLock living(used);
  const ResultsDir results(folder.path() / "run", "x");
  EXPECT_EQ(results.cleared().size(), 3u);
  EXPECT_FALSE(fs::exists(early)) << "killed before it had a lock";
  EXPECT_FALSE(fs::exists(unlocked)) << "killed before it wrote the holder of the lock";
  EXPECT_FALSE(fs::exists(late));
  EXPECT_TRUE(fs::exists(kept / "metrics.csv"));
  EXPECT_TRUE(fs::exists(used / "lock"));
}

TEST(ResultsDir, SeparatesProcessesThatStartAtTheSameTime) {
  const TemporaryFolder folder;
  std::vector<pid_t> processes;
  for (int k = 0; k < 4; ++k) {
    processes.push_back(::fork());
    if (processes.back() != 0) continue;
    int missing = 0;
    for (int again = 0; again < 50; ++again) {
      const ResultsDir results(folder.path() / "run", "x");
      missing += fs::exists(results.work() / "lock") ? 0 : 1;
    }
    ::_exit(missing);
  }
  for (const pid_t process : processes) {
    int status = -1;
    ::waitpid(process, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(ResultsDir, ReplacesResultsOfTheSameNameAndKeepsOtherFiles) {
  const TemporaryFolder folder;
  const fs::path out = old_results(folder);
  ResultsDir results(out, "mine");
  std::ofstream(results.work() / "metrics.csv") << "new";
  EXPECT_NE(read_file(out / "metrics.csv"), "new");
  results.publish();
  EXPECT_EQ(read_file(out / "metrics.csv"), "new");
  EXPECT_EQ(read_file(out / "notes.txt"), "keep me");
}

std::string usage_error(const fs::path& target) {
  try {
    const ResultsDir results(target, "mine");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ResultsDir, RejectsFoldersOfOthers) {
  {
    const TemporaryFolder folder;
    const std::string error = usage_error(old_results(folder, "name = \"other\"\n"));
    EXPECT_NE(error.find("contains the results of 'other', not of 'mine'; choose another folder with --out"),
              std::string::npos)
        << error;
  }
  for (const char* config : {"", "name = 3\n", "not toml ]["}) {
    const TemporaryFolder folder;
    EXPECT_NE(usage_error(old_results(folder, config)).find("has no results of gradwire"), std::string::npos)
        << config;
  }
  const TemporaryFolder folder;
  folder.write("thesis/chapter1.tex", "years of work");
  EXPECT_NE(usage_error(folder.path() / "thesis").find("has no results of gradwire"), std::string::npos);
  EXPECT_NE(usage_error(folder.write("file", "")).find("is a file"), std::string::npos);
  EXPECT_NE(usage_error(folder.path() / "file/below").find("cannot be used for results"), std::string::npos);
  EXPECT_EQ(read_file(folder.path() / "thesis/chapter1.tex"), "years of work");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
}

TEST(ResultsDir, TakesAnEmptyFolder) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "empty");
  EXPECT_EQ(usage_error(folder.path() / "empty"), "no error");
}

}  // namespace
}  // namespace gradwire
