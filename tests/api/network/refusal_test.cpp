// Clients and servers of a program refuse what cannot work, and say so at both ends, in the words of the
// command line.
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/api/api_support.h"
#include "tests/api/network/network_fixture.h"

namespace gradwire {
namespace {

const KeyValues kGd = {{"algorithm.name", "gd"}, {"algorithm.step_size", 0.1}};

struct DiskFull : std::runtime_error {
  using std::runtime_error::runtime_error;
};
class Failing final : public Rows<double> {
 public:
  explicit Failing(int calls) : Rows(0, kDim, 5), calls_(calls) {}
  double loss_and_gradient(std::span<const double> x, Batch batch, std::span<double> gradient) override {
    if (--calls_ == 0) throw DiskFull("patient 17 does not fit");
    return Rows::loss_and_gradient(x, batch, gradient);
  }

 private:
  int calls_;
};

TEST(OracleException, ReachesTheCallerAndTheServerLearnsItsType) {
  const Experiment experiment = custom(kGd);
  std::vector<Rows<double>> oracles = rows_of_all<double>();
  const TemporaryFolder folder;
  Lines lines;
  Server server(experiment, {.state = folder.path(), .log = lines.log()});
  std::deque<ClientThread> others;
  for (std::uint32_t i = 1; i < kParts; ++i)
    others.emplace_back(oracles[i], ClientOptions{.server = server.address(), .part = i, .parts = kParts});
  const ClientOptions options = {.server = server.address(), .name = "first", .part = 0, .parts = kParts};
  Failing failing(10);
  try {
    run_client(failing, options);
    ADD_FAILURE() << "no exception";
  } catch (const DiskFull& error) {
    EXPECT_STREQ(error.what(), "patient 17 does not fit");
  }
  EXPECT_TRUE(eventually([&] { return lines.have("DiskFull ended it; its own log says more"); }))
      << lines.text();
  EXPECT_FALSE(lines.have("patient")) << lines.text();
  run_client(oracles[0], options);  // takes its place again
  expect_same_run(train(oracles, experiment), server.wait());
  for (ClientThread& other : others) other.join();
}

// Writes no gradient.
class Forgetful final : public Rows<double> {
 public:
  Forgetful() : Rows(0, kDim, 5) {}
  double loss_and_gradient(std::span<const double>, Batch, std::span<double>) override { return 1; }
};

TEST(OracleException, SaysThatTheFirstGradientWasNotWritten) {
  const TemporaryFolder folder;
  Server server(custom(kGd), {.state = folder.path()});
  std::vector<Rows<double>> oracles = rows_of_all<double>();
  std::deque<ClientThread> others;
  for (std::uint32_t i = 1; i < kParts; ++i)
    others.emplace_back(oracles[i], ClientOptions{.server = server.address(), .part = i, .parts = kParts});
  Forgetful forgetful;
  const ClientOptions options = {.server = server.address(), .part = 0, .parts = kParts};
  EXPECT_EQ(error_of([&] { run_client(forgetful, options); }),
            "the oracle of this client did not write gradient[0], or read it before; write all " +
                std::to_string(kDim) + " numbers, which are arbitrary at first");
  run_client(oracles[0], options);  // takes its place
  server.wait();
  for (ClientThread& other : others) other.join();
}

TEST(OracleException, ReachesTheCallerFromAFactory) {
  const TemporaryFolder folder;
  Lines lines;
  Server server(custom(kGd), {.state = folder.path(), .log = lines.log()});
  const OracleFactory factory = {.fp64 = [](const ClientRun&) -> std::unique_ptr<Oracle<double>> {
    throw DiskFull("patient 17 does not fit");
  }};
  EXPECT_THROW(run_client(factory, {.server = server.address()}), DiskFull);
  EXPECT_TRUE(eventually([&] { return lines.have("DiskFull ended it"); })) << lines.text();
  EXPECT_FALSE(lines.have("patient")) << lines.text();
}

class UnfitClients : public ::testing::Test {
 protected:
  // Expects that a client is refused with this line, which the server also gets.
  template <class Run>
  void expect_refusal(const Experiment& experiment, const Run& run, const std::string& line) {
    const TemporaryFolder folder;
    Lines lines;
    Server server(experiment, {.state = folder.path(), .log = lines.log()});
    try {
      run(ClientOptions{.server = server.address()});
      ADD_FAILURE() << "no error, but " << line;
    } catch (const BadInput& error) {
      EXPECT_EQ(error.what(), line);
    }
    EXPECT_TRUE(eventually([&] { return lines.have("its message: " + line); })) << lines.text();
  }
};

TEST_F(UnfitClients, AreRefusedForAnotherDimension) {
  Rows<double> oracle(1, 5);
  expect_refusal(
      custom(kGd), [&](const ClientOptions& options) { run_client(oracle, options); },
      "problem.dim is 12, but the oracle of this client has dimension 5; give both the same dimension");
}

TEST_F(UnfitClients, AreRefusedForAnotherPrecision) {
  Rows<float> oracle(1);
  expect_refusal(
      custom(kGd), [&](const ClientOptions& options) { run_client(oracle, options); },
      "precision is \"fp64\", but the oracle of this client is for \"fp32\"; set precision = \"fp32\" at the "
      "server, or bring an oracle for \"fp64\"");
}

TEST_F(UnfitClients, AreRefusedWithoutSamples) {
  Rows<double> oracle(1, kDim, 0);
  expect_refusal(
      custom(kGd), [&](const ClientOptions& options) { run_client(oracle, options); },
      "the oracle of this client has no samples; its sample_count() must be at least 1");
}

TEST_F(UnfitClients, AreRefusedWithoutAnOracle) {
  const std::string line =
      "problem.kind is \"custom\", but this client has no oracle of its own; start a program that brings one "
      "(docs/how-to/own_client.md)";
  expect_refusal(
      custom(kGd), [](const ClientOptions& options) { run_client(options); }, line);
  const TemporaryFolder folder;
  Server server(custom(kGd), {.state = folder.path() / "state"});
  const ProgramResult program =
      run_program("gradwire-client", folder.path(), {"--server", server.address(), "--quiet"});
  EXPECT_EQ(program.code, 2);
  EXPECT_NE(program.err.find(line), std::string::npos) << program.err;
}

TEST_F(UnfitClients, AreRefusedForAKindWithFunctionsOfItsOwn) {
  Rows<double> oracle(1);
  expect_refusal(
      Experiment::from({{"problem.kind", "quadratic"},
                        {"problem.dim", kDim},
                        {"algorithm.name", "gd"},
                        {"algorithm.step_size", 0.1}}),
      [&](const ClientOptions& options) { run_client(oracle, options); },
      "problem.kind is \"quadratic\", but this client has an oracle of its own; set problem.kind = "
      "\"custom\" "
      "at the server, or start a client with data");
}

// The line that a program prints to stderr.
std::string line_of(const ProgramResult& program, const std::string& name) {
  std::string line = program.err;
  if (line.starts_with(name + ": ")) line.erase(0, name.size() + 2);
  for (const std::string& end : {std::string("\n"), "; see " + name + " --help"})
    if (line.ends_with(end)) line.erase(line.size() - end.size());
  return line;
}

TEST(WrongClientOptions, HaveTheWordsOfTheProgram) {
  const TemporaryFolder folder;
  const WorkingIn there(folder.path());
  folder.write("file", "text");
  struct Case {
    ClientOptions options;
    std::vector<std::string> arguments;
  };
  const std::string here = "127.0.0.1:1";
  const std::vector<Case> cases = {
      {{.server = "here"}, {"--server", "here"}},
      {{.server = "10.0.0.5:7000"}, {"--server", "10.0.0.5:7000"}},
      {{.server = here, .name = "a b"}, {"--server", here, "--id", "a b"}},
      {{.server = here, .ca_file = "none.pem", .insecure = true},
       {"--server", here, "--insecure", "--ca", "none.pem"}},
      {{.server = here, .identity = "none"}, {"--server", here, "--identity", "none"}},
      {{.server = here, .token = "gw1.x"}, {"--server", here, "--token", "gw1.x"}},
      {{.server = here, .identity = "me", .token = "gw1.x"},
       {"--server", here, "--identity", "me", "--token", "gw1.x"}},
      {{.server = here, .ca_file = "none.pem"}, {"--server", here, "--ca", "none.pem"}},
      {{.server = here, .state = "file"}, {"--server", here, "--state", "file"}},
      {{.server = here, .data = "digits#4/4"}, {"--server", here, "--data", "digits#4/4"}},
      {{.server = here, .give_up_after = std::chrono::milliseconds(0)},
       {"--server", here, "--give-up-after-ms", "0"}},
  };
  for (const Case& each : cases) {
    const ProgramResult program = run_program("gradwire-client", folder.path(), each.arguments);
    SCOPED_TRACE(program.err);
    EXPECT_EQ(program.code, 2);
    std::string error = "no error";
    try {
      run_client(each.options);
    } catch (const BadInput& e) {
      error = e.what();
    }
    EXPECT_EQ(error, line_of(program, "gradwire-client"));
  }
}

TEST(WrongClientOptions, AreRefusedForOwnOracles) {
  Rows<double> oracle(1);
  const auto refusal = [&](const ClientOptions& options) {
    ClientThread client(oracle, options);
    return client.refusal();
  };
  const std::string here = "127.0.0.1:1";
  EXPECT_EQ(refusal({.server = here, .data = "digits"}),
            "--data 'digits': a client with an oracle of its own reads no data; leave it out");
  EXPECT_EQ(refusal({.server = here, .part = 4, .parts = 4}),
            "part 4: parts are numbered from 0, so the last of 4 is 3");
  EXPECT_EQ(refusal({.server = here, .part = 2}), "part 2: give the number of parts also");
  EXPECT_THROW(run_client(OracleFactory{}, {.server = here}), BadInput);
}

TEST(WrongServerOptions, HaveTheWordsOfTheProgram) {
  const TemporaryFolder folder;
  const WorkingIn there(folder.path());
  folder.write("file", "text");
  folder.write("full/config.toml", "text");
  const Experiment experiment = custom(kGd);
  folder.write("run.toml", experiment.toml());
  struct Case {
    ServerOptions options;
    std::vector<std::string> arguments;
  };
  const std::vector<Case> cases = {
      {{.state = "s", .listen = "0.0.0.0:0"}, {"--state", "s", "--listen", "0.0.0.0:0"}},
      {{.state = "s", .listen = "here"}, {"--state", "s", "--listen", "here"}},
      {{.state = "s", .identity = "i", .insecure = true}, {"--state", "s", "--identity", "i", "--insecure"}},
      {{.state = "s", .identity = "none"}, {"--state", "s", "--identity", "none", "--listen", "127.0.0.1:0"}},
      {{.state = "s", .metrics = "0.0.0.0:9"}, {"--state", "s", "--metrics", "0.0.0.0:9"}},
      {{.state = "file"}, {"--state", "file"}},
      {{.state = "full"}, {"--state", "full"}},
  };
  for (const Case& each : cases) {
    std::vector<std::string> arguments = {"run.toml"};
    arguments.insert(arguments.end(), each.arguments.begin(), each.arguments.end());
    const ProgramResult program = run_program("gradwire-server", folder.path(), arguments);
    SCOPED_TRACE(program.err);
    EXPECT_EQ(program.code, 2);
    std::string error = "no error";
    try {
      Server(experiment, each.options);
    } catch (const BadInput& e) {
      error = e.what();
    }
    EXPECT_EQ(error, line_of(program, "gradwire-server"));
  }
}

std::string error_of_server(const Experiment& experiment, const ServerOptions& options) {
  try {
    Server(experiment, options);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(WrongServerOptions, NeedAFolderThatNoOtherServerUses) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of_server(custom(kGd), {}), "--state is required: the folder of the run");
  const Server server(custom(kGd), {.state = folder.path()});
  const std::string error = error_of_server(custom(kGd), {.state = folder.path()});
  EXPECT_NE(error.find("is in use by process"), std::string::npos) << error;
}

TEST(WrongExperiments, AreRefusedWhenTheServerBegins) {
  const TemporaryFolder folder;
  const ServerOptions options = {.state = folder.path()};
  EXPECT_EQ(error_of_server(custom({{"algorithm.name", "gd"}, {"algorithm.step_size", "theory"}}), options),
            "algorithm.step_size: kind custom has no closed-form smoothness constants, so clients cannot "
            "report them; give a number");
}

}  // namespace
}  // namespace gradwire
