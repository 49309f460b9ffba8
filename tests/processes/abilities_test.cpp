// Tests that a server refuses clients that cannot do what its experiment demands, in one line that says what
// to change.
#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "tests/processes/process_fixture.h"
#include "tests/support/data_files.h"
#include "tests/support/fake_client.h"

namespace gradwire {
namespace {

using Names = std::vector<std::string>;

class AbilitiesTest : public ProcessTest {
 protected:
  // Returns what the server answers to a Hello with these abilities: "" if it is welcome.
  std::string answer(const Names& abilities) {
    FakeClient client(address, [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
    wire::Hello hello;
    hello.set_protocol(kWireVersion);
    hello.set_client_name("board");
    for (const std::string& name : abilities) hello.add_abilities(name);
    client.send(control_frame(FrameType::kHello, hello));
    const auto frame = client.read_message();
    if (!frame) return "no answer";
    if (frame->prefix.type == FrameType::kWelcome) return "";
    wire::ErrorMessage error;
    EXPECT_TRUE(error.ParseFromString(frame->header));
    EXPECT_TRUE(error.fatal());
    return error.message();
  }
};

constexpr const char* kAny = "[problem]\nkind = \"quadratic\"\ndim = 5\nlambda = 0.1\n";
constexpr const char* kRest =
    "[clients]\ncount = 2\n[algorithm]\nname = \"gd\"\nstep_size = 0.1\n[run]\nrounds = 5\n";

TEST_F(AbilitiesTest, AreDemandedByName) {
  struct Case {
    std::string text;
    Names lacking, whole;
    std::string why;
  };
  const std::string any = kAny, rest = kRest;
  const Names of_0_2 = {};
  for (const Case& c : std::vector<Case>{
           {"precision = \"fp64\"\n" + any + rest,
            {"zstd", "fp32"},
            {"fp64"},
            "precision is \"fp64\", but this client computes only in fp32; set precision = \"fp32\" at the "
            "server, or start a client with fp64"},
           {"precision = \"fp32\"\n" + any + rest,
            {"fp64", "zstd"},
            of_0_2,
            "precision is \"fp32\", but this client computes only in fp64; set precision = \"fp64\" at the "
            "server, or start a client with fp32"},
           {any + rest + "kernels = \"portable\"\n",
            of_0_2,
            {"fp64", "kernels:portable"},
            "run.kernels is \"portable\", but this client has no portable kernels; install the server's "
            "release "
            "of the client, or set run.kernels = \"best\" at the server"},
           {"[problem]\nkind = \"custom\"\ndim = 5\n" + rest,
            of_0_2,
            {"fp64", "problem:custom", "something new"},
            "problem.kind is \"custom\", which this client does not know; install the server's release of "
            "the "
            "client"},
           {any + rest + "[server]\nzstd = \"3\"\n",
            {"fp64"},
            of_0_2,
            "server.zstd is \"3\", but this client reads no zstd; set server.zstd = \"off\" at the server"},
           {any + rest, {"fp32"}, {"fp64"}, "precision is \"fp64\", but this client computes only in fp32"},
       }) {
    SCOPED_TRACE(c.text);
    fs::remove_all(state());
    fs::remove(folder.path() / "server.log");
    write_config(c.text);
    const Process server = start_server();
    const std::string refused = answer(c.lacking);
    EXPECT_EQ(refused.substr(0, c.why.size()), c.why);
    EXPECT_TRUE(eventually([&] { return server.log().find("disconnected: " + c.why) != std::string::npos; }))
        << server.log();
    EXPECT_EQ(answer(c.whole), "");
  }
}

// A network by local steps, and Hessians: both run other kernels on other processors.
TEST_F(AbilitiesTest, GiveTheBitsOfTheSimulationByPortableKernelsOnEveryProcessor) {
  const std::string data = "\ndata = \"synthetic\"\nsamples = 60\ndim = 11\n",
                    clients = "[clients]\ncount = 3\n";
  for (const std::string& text : std::vector<std::string>{
           "[problem]\nkind = \"mlp\"\nhidden = [9]" + data + clients +
               "[algorithm]\nname = \"fedavg\"\nbatch = 4\nlocal_step_size = 0.1\n[run]\nrounds = 8\n",
           "[problem]\nkind = \"logistic\"\nregularizer = \"l2\"\nlambda = 0.1" + data + clients +
               "[algorithm]\nname = \"fednl\"\ncompressor = \"rankr:r=1\"\n[run]\nrounds = 8\n"}) {
    SCOPED_TRACE(text);
    fs::remove_all(state());
    fs::remove(folder.path() / "server.log");
    write_config(text + "kernels = \"portable\"\n");
    Process server = start_server();
    std::vector<Process> all;
    for (std::uint32_t part = 0; part < client_count; ++part) {
      const ScopedEnvironment best("GRADWIRE_KERNELS", part == 1 ? "portable" : nullptr);
      all.push_back(start_client(part, address));
    }
    expect_all_end_well(server, all);
    expect_same_as_simulated();
    EXPECT_EQ(server.log().find("with kernels"), std::string::npos) << server.log();
    EXPECT_NE(read_file(state() / "summary.json").find("\"kernels\": \"portable\""), std::string::npos);
  }
}

}  // namespace
}  // namespace gradwire
