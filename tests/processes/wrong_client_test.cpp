// Tests of clients whose data do not fit those of the others: only they are refused, and the run takes place.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/processes/process_fixture.h"

namespace gradwire {
namespace {

class WrongClient : public ProcessTest {
 protected:
  static std::string table(const std::string& header, const std::string& low, int shift) {
    std::string text = header + "\n";
    for (int j = 0; j < 12; ++j)
      text += std::to_string(j + shift) + "," + std::to_string((7 * j + shift) % 5) + "," +
              (j % 2 == 0 ? low : "1") + "\n";
    return text;
  }
  void write_experiment(const std::string& normalize) {
    write_config(
        "[problem]\nkind = \"logistic\"\ndata = \"csv:x.csv\"\nlabel = \"y\"\nnormalize = \"" + normalize +
        "\"\n[clients]\ncount = 2\n[algorithm]\nname = \"gd\"\nstep_size = 0.01\n[run]\nrounds = 20\n");
    folder.write("a.csv", table("age,size,y", "-1", 3));
    folder.write("b.csv", table("age,size,y", "-1", 40));
    folder.write("swapped.csv", table("size,age,y", "-1", 5));
    folder.write("labels.csv", table("age,size,y", "0", 5));
  }
  Process start_site(const std::string& name, const std::string& file) {
    return Process("gradwire-client", {"--server", address, "--data", file, "--id", name},
                   folder.path() / (name + ".log"));
  }
  void expect_refused(Process& server, const std::string& name, const std::string& file,
                      const std::string& why) {
    Process wrong = start_site(name, file);
    EXPECT_EQ(wrong.wait(), 2) << wrong.log();
    EXPECT_NE(wrong.log().find("error: the server says: " + why), std::string::npos) << wrong.log();
    EXPECT_TRUE(eventually([&] { return server.log().find("disconnected: " + why) != std::string::npos; }))
        << server.log();
    for (const std::string& line : lines_of(server.log()))
      if (line.find(why) != line.npos) {
        EXPECT_NE(line.find("warning: client 1 '" + name + "'"), line.npos) << line;
        EXPECT_NE(line.find("'north'"), line.npos) << line;
      }
  }
};

TEST_F(WrongClient, IsRefusedAlone) {
  for (const std::string normalize : {"none", "standard"}) {
    SCOPED_TRACE(normalize);
    fs::remove_all(state());
    fs::remove(folder.path() / "server.log");
    write_experiment(normalize);
    Process server = start_server();
    std::vector<Process> clients;
    clients.push_back(start_site("north", "a.csv"));
    const std::string ready = normalize == "none" ? "joined with 12 samples" : "sent the sums of 2 features";
    EXPECT_TRUE(eventually([&] { return server.log().find(ready) != std::string::npos; })) << server.log();
    expect_refused(server, "east", "swapped.csv", "the columns of its table are not those of client 'north'");
    EXPECT_NE(
        read_file(folder.path() / "east.log").find("info: the columns of its table: size, age; label: y\n"),
        std::string::npos);
    expect_refused(server, "west", "labels.csv", "logistic regression needs exactly two labels");
    EXPECT_FALSE(server.ended()) << server.log();
    clients.push_back(start_site("south", "b.csv"));
    expect_all_end_well(server, clients);
    for (const std::string name : {"north", "east", "west", "south"})
      fs::remove(folder.path() / (name + ".log"));
  }
}

TEST_F(WrongClient, WithOtherUnitsOrTheFileOfAnotherOneGivesAWarning) {
  write_experiment("standard");
  std::string millimetres = "age,size,y\n";
  for (int j = 0; j < 12; ++j)
    millimetres += std::to_string(j) + "," + std::to_string(5000 + j) + (j % 2 == 0 ? ",-1\n" : ",1\n");
  folder.write("b.csv", millimetres);
  Process server = start_server();
  std::vector<Process> clients;
  clients.push_back(start_site("client-1", "a.csv"));
  EXPECT_TRUE(eventually([&] { return server.log().find("sent the sums of 2") != std::string::npos; }));
  clients.push_back(start_site("client-0", "b.csv"));
  expect_all_end_well(server, clients);
  EXPECT_NE(server.log().find("warning: the values of feature 2 are about "), std::string::npos)
      << server.log();
  EXPECT_NE(
      server.log().find(" times larger at client 0 'client-0' than at client 1 'client-1'; are they in the "
                        "same unit?"),
      std::string::npos)
      << server.log();
  fs::remove_all(state());
  fs::remove(folder.path() / "server.log");
  write_experiment("none");
  server = start_server();
  clients.clear();
  for (const char* name : {"client-0", "client-1"}) clients.push_back(start_site(name, "a.csv"));
  expect_all_end_well(server, clients);
  EXPECT_NE(server.log().find("warning: 'client-0' and 'client-1' have the same samples"), std::string::npos)
      << server.log();
}

TEST_F(WrongClient, LearnsWhereTheKeysOfAnErrorAre) {
  write_experiment("none");
  folder.write("other.csv", table("age,size,z", "-1", 5));
  Process server = start_server();
  Process wrong = start_site("east", "other.csv");
  EXPECT_EQ(wrong.wait(), 2) << wrong.log();
  EXPECT_NE(wrong.log().find("problem.label"), std::string::npos) << wrong.log();
  EXPECT_NE(wrong.log().find(" (such keys are in the server's experiment file)\n"), std::string::npos)
      << wrong.log();
  Process none("gradwire-client", {"--server", address, "--id", "west"}, folder.path() / "west.log");
  EXPECT_EQ(none.wait(), 2) << none.log();
  EXPECT_NE(
      none.log().find("--data is missing: name this client's own data, as in --data FILE, or its part of "
                      "common data, as in --data 'FILE#0/2'"),
      std::string::npos)
      << none.log();
}

}  // namespace
}  // namespace gradwire
