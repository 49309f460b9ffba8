// Runs that measure energy.
#include <atomic>
#include <gtest/gtest.h>

#include "config/experiment_file.h"
#include "experiments/cli/run/run.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMeasuredRun =
    "name = \"warm\"\n[problem]\nkind = \"quadratic\"\ndim = 4\n[clients]\ncount = 2\n[algorithm]\n"
    "name = \"gd\"\nstep_size = 0.1\n[run]\nrounds = 3\n";

TEST(EnergyRun, WritesTheEnergyOfEachRound) {
  TemporaryFolder folder;
  const EnergyFolders folders{(folder.path() / "powercap").string(), (folder.path() / "hwmon").string()};
  fs::create_directories(folder.path() / "powercap/intel-rapl:0");
  folder.write("powercap/intel-rapl:0/name", "package-0\n");
  folder.write("powercap/intel-rapl:0/energy_uj", "100\n");
  RunRequest request;
  request.out = folder.path() / "out";
  request.verbosity = Verbosity::kQuiet;
  request.figure = false;
  request.energy = folders;
  const std::atomic<bool> stop{false};
  const LoadedExperiment loaded = parse_experiment(kMeasuredRun, "warm.toml");
  run_experiment(loaded, request, stop);
  const auto lines = lines_of(read_file(request.out / "energy.csv"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "round,seconds,package_joules,core_joules,memory_joules,board_joules");
  EXPECT_TRUE(lines[3].starts_with("3,") && lines[3].ends_with(",0.000000,,,")) << lines[3];
  EXPECT_NE(read_file(request.out / "summary.json").find("\"package_joules\": 0.0"), std::string::npos);

  fs::create_directories(folder.path() / "hwmon/hwmon0");
  folder.write("hwmon/hwmon0/name", "ina226\n");
  folder.write("hwmon/hwmon0/power1_input", "2000000\n");
  fs::remove_all(folders.powercap);
  run_experiment(loaded, request, stop);
  EXPECT_TRUE(lines_of(read_file(request.out / "energy.csv"))[3].find(",,,,0.") != std::string::npos);
  EXPECT_NE(read_file(request.out / "summary.json").find("\"board_sensor\": \"ina226 power1\""),
            std::string::npos);

  request.energy = EnergyFolders{"/nowhere", "/nowhere"};
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
