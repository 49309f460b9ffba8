// Energy counters and sensors, in folders with the layouts of /sys/class/powercap and /sys/class/hwmon.
#include "report/energy.h"

#include <atomic>
#include <gtest/gtest.h>
#include <unistd.h>

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
  // Writes a file of a device, such as energy1_input of hwmon0.
  void sensor(const std::string& device, const std::string& file, const std::string& text) {
    fs::create_directories(folder_.path() / "hwmon" / device);
    folder_.write("hwmon/" + device + "/" + file, text + "\n");
  }
  fs::path root() const { return folder_.path() / "powercap"; }
  fs::path hwmon() const { return folder_.path() / "hwmon"; }
  EnergyFolders folders() const { return {root().string(), hwmon().string()}; }
  EnergyMeter::Clock clock() {
    return [this] { return now_; };
  }

  TemporaryFolder folder_;
  double now_ = 1000;  // seconds
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
  EnergyMeter meter(folders(), 0);
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
  EnergyMeter meter(folders(), 0);
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
  EnergyMeter meter(folders(), 0.001);
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
  EnergyMeter absent(folders(), 0);
  EXPECT_EQ(
      absent.trouble(),
      "cannot measure energy: /sys/class/powercap has no energy counters (RAPL), and /sys/class/hwmon no "
      "sensors of energy or power; virtual machines and many processors lack them");
  EXPECT_FALSE(absent.read().package);
  EXPECT_EQ(energy_text(absent.read()), "");
  zone("dtpm", "package-0", 1);  // another kind of interface
  EXPECT_NE(EnergyMeter(folders(), 0).trouble(), "");
}

TEST_F(EnergyTest, OmitsAKindWithAnUnreadableCounter) {
  zone("intel-rapl:0", "package-0", 100);
  zone("intel-rapl:1", "package-1", 100);
  zone("intel-rapl:1:0", "dram", 100);
  fs::remove(root() / "intel-rapl:1/energy_uj");
  fs::create_directory(root() / "intel-rapl:1/energy_uj");  // also root cannot read it
  EnergyMeter meter(folders(), 0);
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
  EXPECT_NE(EnergyMeter(folders(), 0).trouble().find("as root: chmod a+r"), std::string::npos);
}

TEST_F(EnergyTest, SurvivesInvalidAndVanishingCounters) {
  for (const char* text : {"", "x", "-5", "99999999999999999999999999", "12 34"}) {
    zone("intel-rapl:0", "package-0", 100);
    folder_.write("powercap/intel-rapl:0/energy_uj", text);
    EnergyMeter meter(folders(), 0);
    EXPECT_NE(meter.trouble().find("does not contain a number"), std::string::npos) << text;
    EXPECT_FALSE(meter.read().package);
  }
  zone("intel-rapl:0", "package-0", 100);
  EnergyMeter meter(folders(), 0);
  set("intel-rapl:0", 200);
  EXPECT_DOUBLE_EQ(*meter.read().package, 100e-6);
  folder_.write("powercap/intel-rapl:0/energy_uj", "broken");
  EXPECT_DOUBLE_EQ(*meter.read().package, 100e-6) << "it stands still";
}

// ---- boards ----

TEST_F(EnergyTest, IntegratesThePowerOfABoard) {
  sensor("hwmon0", "name", "ina226");
  sensor("hwmon0", "power1_input", "2000000");  // 2 W
  EnergyMeter meter(folders(), 0, clock());
  EXPECT_EQ(meter.trouble(), "");
  EXPECT_EQ(meter.read().board, 0.0);
  now_ += 3;
  sensor("hwmon0", "power1_input", "4000000");
  EXPECT_DOUBLE_EQ(*meter.read().board, 9.0) << "3 s at 2 to 4 W";
  now_ += 0.5;
  const Energy used = meter.read();
  EXPECT_DOUBLE_EQ(*used.board, 11.0);
  EXPECT_EQ(energy_text(used), "board (ina226 power1) 11 J");
  EXPECT_FALSE(used.package || used.core || used.memory);
  now_ -= 100;
  EXPECT_DOUBLE_EQ(*meter.read().board, 11.0) << "a clock that jumps back adds nothing";
}

TEST_F(EnergyTest, ReadsPowerInAThread) {
  sensor("hwmon0", "name", "ina219");
  sensor("hwmon0", "power1_input", "1000000");
  std::atomic<int> readings{0};
  // Each reading comes a second after the one before.
  EnergyMeter meter(folders(), 20, [&] { return static_cast<double>(readings++); });
  while (readings < 4) usleep(1'000);
  EXPECT_GE(*meter.read().board, 4.0);
}

TEST_F(EnergyTest, PrefersTheCounterOfADeviceToItsPower) {
  sensor("hwmon3", "name", "ina238");
  sensor("hwmon3", "energy1_input", "18446744073709551000");
  sensor("hwmon3", "power1_input", "1000000");
  EnergyMeter meter(folders(), 0, clock());
  now_ += 10;
  sensor("hwmon3", "energy1_input", "2500000");  // overflowed; its largest value is not known
  const Energy used = meter.read();
  EXPECT_DOUBLE_EQ(*used.board, 2.5);
  EXPECT_EQ(used.board_sensor, "ina238 energy1");
}

TEST_F(EnergyTest, TakesTheSensorThatCountsMost) {
  sensor("hwmon1", "name", "ina3221");
  sensor("hwmon1", "power1_input", "3000000");
  sensor("hwmon1", "power1_label", "VDD_CPU");
  sensor("hwmon1", "power2_input", "8000000");
  sensor("hwmon1", "power2_label", "VDD_IN");
  sensor("hwmon1", "power2_average", "8000000");
  sensor("hwmon2", "name", "nvme");
  sensor("hwmon2", "temp1_input", "40000");
  EnergyMeter meter(folders(), 0, clock());
  now_ += 2;
  const Energy used = meter.read();
  EXPECT_DOUBLE_EQ(*used.board, 16.0);
  EXPECT_EQ(used.board_sensor, "ina3221 VDD_IN");
}

TEST_F(EnergyTest, ReadsSensorsOnlyWithoutRapl) {
  sensor("hwmon0", "name", "ina226");
  sensor("hwmon0", "power1_input", "2000000");
  zone("intel-rapl:0", "package-0", 100);
  EXPECT_FALSE(EnergyMeter(folders(), 0).read().board);
  EXPECT_TRUE(EnergyMeter(folders(), 0).read().package);
}

TEST_F(EnergyTest, NamesSensorsThatCannotBeRead) {
  sensor("hwmon0", "name", "ina226");
  fs::create_directories(hwmon() / "hwmon0/power1_input");  // also root cannot read it
  sensor("hwmon1", "power1_input", "");
  const fs::path first = hwmon() / "hwmon0/power1_input", second = hwmon() / "hwmon1/power1_input";
  EnergyMeter blind(folders(), 0, clock());
  EXPECT_EQ(blind.trouble(), "a sensor is not read: " + first.string() +
                                 ": does not contain a number; a sensor is not read: " + second.string() +
                                 ": does not contain a number");
  EXPECT_FALSE(blind.read().is_measured());
  sensor("hwmon1", "power1_input", "1000000");
  EnergyMeter meter(folders(), 0, clock());
  now_ += 1;
  EXPECT_DOUBLE_EQ(*meter.read().board, 1.0);
  EXPECT_NE(meter.trouble(), "");
  fs::remove(second);
  EXPECT_DOUBLE_EQ(*meter.read().board, 1.0) << "it stands still";
}

}  // namespace
}  // namespace gradwire
