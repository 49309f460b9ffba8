// Tests what a server makes of the abilities of its clients.
#include "proto/wire/abilities.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

#include "fl_server/plan_of_joins.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

LoadedExperiment loaded(const std::string& zstd) {
  return parse_experiment(
      "[problem]\nkind = \"quadratic\"\ndim = 5\nlambda = 0.1\n[clients]\ncount = 3\n[algorithm]\nname = "
      "\"gd\"\nstep_size = 0.1\n[server]\nzstd = \"" +
          zstd + "\"\n",
      "run.toml");
}

// Three clients, of which the last one may read no zstd.
ClientTable joined(bool last_reads_zstd) {
  ClientTable table(3);
  for (ClientId client = 0; client < table.size(); ++client) {
    ClientInfo info;
    info.name = "c" + std::to_string(client);
    info.abilities.zstd = client < 2 || last_reads_zstd;
    EXPECT_EQ(table.assign(info.name, {}, {}).value(), client);
    EXPECT_TRUE(table.join(client, info));
  }
  return table;
}

TEST(Abilities, WithoutZstdTurnItOffForAll) {
  for (const std::string zstd : {"auto", "off"}) {
    const RunPlan plan = plan_of_joins(loaded(zstd), joined(false));
    EXPECT_EQ(plan.experiment.server.zstd, "off");
    EXPECT_EQ(plan.asked.server.zstd, zstd);
    EXPECT_EQ(
        std::ranges::count(plan.warnings,
                           "server.zstd = \"auto\" is off in this run, because client 2 'c2' reads no zstd"),
        zstd == "auto" ? 1 : 0);
    EXPECT_TRUE(check_abilities({.zstd = false}, plan.experiment, true));
  }
}

TEST(Abilities, WithoutZstdAreTooFewInARunThatUsesIt) {
  const RunPlan plan = plan_of_joins(loaded("auto"), joined(true));
  EXPECT_EQ(plan.experiment.server.zstd, "auto");
  const Status late = check_abilities({.zstd = false}, plan.experiment, true);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message,
            "the run has begun with server.zstd = \"auto\", but this client reads no zstd; set server.zstd = "
            "\"off\" and start the server with --fresh");
  EXPECT_TRUE(check_abilities({.zstd = false}, plan.experiment, false)) << "auto would have turned it off";
}

TEST(Abilities, ArriveAsTheyWereSent) {
  for (const bool zstd : {false, true})
    for (const bool fp32 : {false, true})
      for (const bool portable : {false, true}) {
        wire::Hello hello;
        write_abilities({.zstd = zstd, .fp32 = fp32, .fp64 = true, .portable_kernels = portable}, hello);
        hello.add_abilities("an ability of a later release");
        const Abilities read = read_abilities(hello);
        EXPECT_EQ(read.zstd, zstd);
        EXPECT_EQ(read.fp32, fp32);
        EXPECT_TRUE(read.fp64);
        EXPECT_EQ(read.portable_kernels, portable);
        EXPECT_FALSE(read.custom_problems);
      }
}

TEST(Abilities, AreThoseOfAnOldReleaseIfTheHelloHasNone) {
  const Abilities old = read_abilities(wire::Hello());
  EXPECT_TRUE(old.zstd && old.fp32 && old.fp64);
  EXPECT_FALSE(old.portable_kernels || old.custom_problems);
}

}  // namespace
}  // namespace gradwire
