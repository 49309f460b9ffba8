// Servers and clients of a program authenticate over TLS, as the programs do.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/api/network/network_fixture.h"

namespace gradwire {
namespace {

class SecureFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    const ProgramResult made =
        run_program("gradwire-server", folder.path(),
                    {"init", "identity", "--clients", std::to_string(kParts), "--host", "127.0.0.1"});
    ASSERT_EQ(made.code, 0) << made.err;
    for (const std::string& line : lines_of(made.out))
      if (line.starts_with("gw1.")) tokens.push_back(line);
    ASSERT_EQ(tokens.size(), kParts);
  }
  ServerOptions options() const {
    return {.state = folder.path() / "state", .identity = folder.path() / "identity"};
  }

  const TemporaryFolder folder;
  std::vector<std::string> tokens;
};

TEST_F(SecureFolder, GivesTheRunOfTrain) {
  const Experiment experiment = custom(
      {{"algorithm.name", "ef21"}, {"algorithm.compressor", "topk:k=2"}, {"algorithm.step_size", 0.2}});
  std::vector<Rows<double>> oracles = rows_of_all<double>();
  Server server(experiment, options());
  std::deque<ClientThread> clients;
  for (std::uint32_t i = 0; i < kParts; ++i)
    clients.emplace_back(oracles[i], ClientOptions{.server = server.address(),
                                                   .identity = folder.path() / ("me" + std::to_string(i)),
                                                   .token = tokens[i],
                                                   .part = i,
                                                   .parts = kParts});
  expect_same_run(train(oracles, experiment), server.wait());
  for (ClientThread& client : clients) client.join();
}

TEST_F(SecureFolder, RefusesAClientWithoutAToken) {
  const Experiment experiment = custom({{"algorithm.name", "gd"}, {"algorithm.step_size", 0.2}});
  Rows<double> oracle(0);
  Server server(experiment, options());
  ClientThread client(oracle, {.server = server.address(), .ca_file = folder.path() / "identity/ca.pem"});
  EXPECT_EQ(
      client.refusal(),
      "the server says: this server requires authentication: start the client with the --token that the "
      "operator made for it");
}

TEST_F(SecureFolder, EndsAStoppedClient) {
  const Experiment experiment = custom({{"algorithm.name", "gd"}, {"algorithm.step_size", 0.2}});
  Rows<double> oracle(0);
  Server server(experiment, options());
  Lines lines;
  ClientThread client(
      oracle,
      {.server = server.address(), .identity = folder.path() / "me", .token = tokens[0], .log = lines.log()});
  ASSERT_TRUE(eventually([&] { return lines.have("joined as client 0 of 4"); })) << lines.text();
  client.stop();
  EXPECT_NO_THROW(client.join());
}

}  // namespace
}  // namespace gradwire
