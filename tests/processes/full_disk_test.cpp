// Tests of gradwire run with a full disk, and without file descriptors.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/processes/process_fixture.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

constexpr rlim_t kRoom = 300'000;  // largest size of a file; a complete metrics.csv is larger

void limit_files() {
  const rlimit limit{kRoom, kRoom};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

class FullDiskTest : public ProcessTest {
 protected:
  Process start(const std::string& out, const std::vector<std::string>& more, void (*deny)() = nullptr) {
    std::vector<std::string> arguments = {"run",
                                          "run.toml",
                                          "--quiet",
                                          "--out",
                                          out,
                                          "--threads",
                                          "1",
                                          "--set",
                                          "run.rounds=6000",
                                          "--set",
                                          "run.evaluate_every=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const fs::path log = folder.path() / "run.log";
    fs::remove(log);
    return Process("gradwire", arguments, log, deny);
  }
};

TEST_F(FullDiskTest, ResumesFromAnEarlierCheckpoint) {
  write_config();
  Process full = start("out", {"--checkpoint-every", "0.001"}, limit_files);
  EXPECT_EQ(full.wait(), 1);
  EXPECT_NE(full.log().find("metrics.csv: cannot be written: File too large; make room, then start again"),
            std::string::npos)
      << full.log();
  EXPECT_NE(full.log().find("the same command continues from the last checkpoint"), std::string::npos)
      << full.log();
  Process resumed = start("out", {"--resume"});
  EXPECT_EQ(resumed.wait(120), 0) << resumed.log();
  Process whole = start("whole", {"--checkpoint-every", "0"});
  EXPECT_EQ(whole.wait(120), 0) << whole.log();
  EXPECT_EQ(read_file(folder.path() / "out" / "model.bin"), read_file(folder.path() / "whole" / "model.bin"));
  EXPECT_EQ(without_seconds(read_file(folder.path() / "out" / "metrics.csv")),
            without_seconds(read_file(folder.path() / "whole" / "metrics.csv")));
}

TEST_F(FullDiskTest, MentionsNoCheckpointWithoutOne) {
  write_config();
  Process full = start("out", {"--checkpoint-every", "0"}, limit_files);
  EXPECT_EQ(full.wait(), 1);
  EXPECT_NE(full.log().find("File too large"), std::string::npos) << full.log();
  EXPECT_NE(full.log().find("the measurements until then are in"), std::string::npos) << full.log();
  EXPECT_EQ(full.log().find("continues from"), std::string::npos) << full.log();
  EXPECT_EQ(lines_of(full.log()).size(), 1u) << full.log();
}

TEST_F(FullDiskTest, ReportsMissingFileDescriptors) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer opens files itself";
  write_config();
  void (*const denials[])() = {allow_descriptors<5>, allow_descriptors<6>, allow_descriptors<7>,
                               allow_descriptors<8>, allow_descriptors<9>, allow_descriptors<10>};
  for (const auto deny : denials) {
    Process run = start("out", {"--set", "run.rounds=10"}, deny);
    const int code = run.wait();
    if (code == 0 || run.log().find("error while loading shared libraries") != std::string::npos) continue;
    EXPECT_NE(run.log().find("Too many open files"), std::string::npos) << run.log();
    EXPECT_EQ(run.log().find("disk full"), std::string::npos) << run.log();
  }
}

}  // namespace
}  // namespace gradwire
