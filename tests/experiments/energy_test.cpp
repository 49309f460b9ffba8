// Energy counters, in a folder with the layout of /sys/class/powercap.
#include "experiments/cli/run/energy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "config/experiment_file.h"
#include "experiments/cli/run/run.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

class EnergyTest : public ::testing::Test {
 protected:
  void zone(const std::string& folder, const std::string& name, std::uint64_t uj,
            const std::string& range = "1000000\n") {
    fs::create_directories(root() / folder);
    folder_.write("powercap/" + folder + "/name", name + "\n");
    if (!range.empty()) folder_.write("powercap/" + folder + "/max_energy_range_uj", range);
    set(folder, uj);
  }
  void set(const std::string& folder, std::uint64_t uj) {
    folder_.write("powercap/" + folder + "/energy_uj", std::to_string(uj) + "\n");
  }
  fs::path root() const { return folder_.path() / "powercap"; }

  TemporaryFolder folder_;
};

TEST_F(EnergyTest, AddsUpTheSocketsOfEachKind) {
  zone("intel-rapl:0", "package-0", 100);
  zone("intel-rapl:0:0", "core", 10);
  zone("intel-rapl:0:1", "uncore", 5);
  zone("intel-rapl:0:2", "dram", 7);
  zone("intel-rapl:1", "package-1", 200);
  zone("intel-rapl:1:0", "core", 20);
  zone("intel-rapl:2", "psys", 1000);
  zone("intel-rapl-mmio:0", "package-0", 100);  // counts the first package again
  EnergyMeter meter(root(), 0);
  EXPECT_EQ(meter.trouble(), "");
  const Energy none = meter.read();
  EXPECT_EQ(none.package, 0.0);
  set("intel-rapl:0", 400);
  set("intel-rapl:1", 250);
  set("intel-rapl:0:0", 17);
  set("intel-rapl:0:1", 500);
  set("intel-rapl:0:2", 8);
  set("intel-rapl:2", 5000);
  set("intel-rapl-mmio:0", 400);
  const Energy used = meter.read();
  EXPECT_DOUBLE_EQ(*used.package, 350e-6);
  EXPECT_DOUBLE_EQ(*used.core, 7e-6);
  EXPECT_DOUBLE_EQ(*used.memory, 1e-6);
  EXPECT_EQ(energy_text(used), "package 0.00035 J, core 7e-06 J, memory 1e-06 J");
}

TEST_F(EnergyTest, FollowsCountersThatOverflow) {
  zone("intel-rapl:0", "package-0", 999'000);
  zone("intel-rapl:0:0", "core", 900, "");  // its largest value is not known
  EnergyMeter meter(root(), 0);
  set("intel-rapl:0", 500);
  set("intel-rapl:0:0", 300);
  EXPECT_DOUBLE_EQ(*meter.read().package, 1500e-6);
  set("intel-rapl:0", 999'999);
  EXPECT_DOUBLE_EQ(*meter.read().package, 1500e-6 + 999'499e-6);
  set("intel-rapl:0", 1);
  const Energy used = meter.read();
  EXPECT_DOUBLE_EQ(*used.package, 1500e-6 + 999'499e-6 + 2e-6);
  EXPECT_DOUBLE_EQ(*used.core, 300e-6) << "at least what it shows";
  EXPECT_FALSE(used.memory);
}

TEST_F(EnergyTest, ReadsBetweenTwoOverflowsInAThread) {
  zone("intel-rapl:0", "package-0", 0);
  EnergyMeter meter(root(), 0.001);
  for (int wrap = 0; wrap < 3; ++wrap) {
    set("intel-rapl:0", 900'000);
    usleep(100'000);
    set("intel-rapl:0", 100'000);
    usleep(100'000);
  }
  // The counter goes from 0 to 0.9, overflows at 1.0 and goes to 0.1, then to 0.9 and so on. A meter that
  // only reads it at the end would see less.
  EXPECT_NEAR(*meter.read().package, 0.9 + 0.2 + 2 * (0.8 + 0.2), 1e-9);
}

TEST_F(EnergyTest, ReportsMissingCounters) {
  EnergyMeter absent(root(), 0);
  EXPECT_EQ(absent.trouble(), "cannot measure energy: " + root().string() +
                                  " has no energy counters (RAPL); virtual machines and many processors "
                                  "lack them");
  EXPECT_FALSE(absent.read().package);
  EXPECT_EQ(energy_text(absent.read()), "");
  zone("dtpm", "package-0", 1);  // another kind of interface
  EXPECT_NE(EnergyMeter(root(), 0).trouble(), "");
}

TEST_F(EnergyTest, OmitsAKindWithAnUnreadableCounter) {
  zone("intel-rapl:0", "package-0", 100);
  zone("intel-rapl:1", "package-1", 100);
  zone("intel-rapl:1:0", "dram", 100);
  fs::remove(root() / "intel-rapl:1/energy_uj");
  fs::create_directory(root() / "intel-rapl:1/energy_uj");  // also root cannot read it
  EnergyMeter meter(root(), 0);
  EXPECT_TRUE(meter.trouble().starts_with("the energy of packages is not measured: " +
                                          (root() / "intel-rapl:1/energy_uj").string()))
      << meter.trouble();
  set("intel-rapl:1:0", 400);
  const Energy used = meter.read();
  EXPECT_FALSE(used.package);
  EXPECT_DOUBLE_EQ(*used.memory, 300e-6);
}

TEST_F(EnergyTest, NamesTheRemedyForRootIfReadingIsNotAllowed) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  zone("intel-rapl:0", "package-0", 100);
  fs::permissions(root() / "intel-rapl:0/energy_uj", fs::perms::none);
  EXPECT_NE(EnergyMeter(root(), 0).trouble().find("as root: chmod a+r"), std::string::npos);
}

TEST_F(EnergyTest, SurvivesInvalidAndVanishingCounters) {
  for (const char* text : {"", "x", "-5", "99999999999999999999999999", "12 34"}) {
    zone("intel-rapl:0", "package-0", 100);
    folder_.write("powercap/intel-rapl:0/energy_uj", text);
    EnergyMeter meter(root(), 0);
    EXPECT_NE(meter.trouble().find("does not contain a number"), std::string::npos) << text;
    EXPECT_FALSE(meter.read().package);
  }
  zone("intel-rapl:0", "package-0", 100);
  EnergyMeter meter(root(), 0);
  set("intel-rapl:0", 200);
  EXPECT_DOUBLE_EQ(*meter.read().package, 100e-6);
  folder_.write("powercap/intel-rapl:0/energy_uj", "broken");
  EXPECT_DOUBLE_EQ(*meter.read().package, 100e-6) << "it stands still";
}

constexpr const char* kMeasuredRun =
    "name = \"warm\"\n[problem]\nkind = \"quadratic\"\ndim = 4\n[clients]\ncount = 2\n[algorithm]\n"
    "name = \"gd\"\nstep_size = 0.1\n[run]\nrounds = 3\n";

TEST_F(EnergyTest, WritesTheEnergyOfEachRound) {
  zone("intel-rapl:0", "package-0", 100);
  RunRequest request;
  request.out = folder_.path() / "out";
  request.verbosity = Verbosity::kQuiet;
  request.figure = false;
  request.energy = root();
  const std::atomic<bool> stop{false};
  const LoadedExperiment loaded = parse_experiment(kMeasuredRun, "warm.toml");
  run_experiment(loaded, request, stop);
  const auto lines = lines_of(read_file(request.out / "energy.csv"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "round,seconds,package_joules,core_joules,memory_joules");
  EXPECT_TRUE(lines[3].starts_with("3,") && lines[3].ends_with(",0.000000,,")) << lines[3];
  EXPECT_NE(read_file(request.out / "summary.json").find("\"package_joules\": 0.0"), std::string::npos);

  request.energy = folder_.path() / "nowhere";
  run_experiment(loaded, request, stop);
  EXPECT_FALSE(fs::exists(request.out / "energy.csv")) << "that of the run before";
  const std::string summary = read_file(request.out / "summary.json");
  EXPECT_NE(summary.find("\"package_joules\": null"), std::string::npos) << summary;
  EXPECT_NE(summary.find("\"trouble\": \"cannot measure energy"), std::string::npos) << summary;

  request.energy.reset();
  run_experiment(loaded, request, stop);
  EXPECT_EQ(read_file(request.out / "summary.json").find("energy"), std::string::npos);
}

}  // namespace
}  // namespace gradwire
