// Clients of gradwire.h in whole runs.
#include <arpa/inet.h>
#include <cmath>
#include <csignal>
#include <deque>
#include <limits>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <utility>

#include "tests/c_api/c_fixture.h"

namespace gradwire {
namespace {

const KeyValues kEf21 = {
    {"algorithm.name", "ef21"}, {"algorithm.compressor", "topk:k=2"}, {"algorithm.step_size", 0.2}};
const KeyValues kFedAvg = {{"algorithm.name", "fedavg"},
                           {"algorithm.batch", 2},
                           {"algorithm.local_steps", 3},
                           {"algorithm.local_step_size", 0.1}};

template <class Real>
void compare(const KeyValues& keys, const std::string& precision, bool by_steps) {
  SCOPED_TRACE(precision + (by_steps ? " by steps" : ""));
  const Experiment experiment = custom(keys).with("precision", precision);
  std::vector<Rows<Real>> oracles = rows_of_all<Real>();
  const TrainResult here = train(oracles, experiment);
  const TemporaryFolder folder;
  Server server(experiment, {.state = folder.path() / "state"});
  std::deque<CallerRows<Real>> rows;
  std::vector<std::thread> threads;
  std::array<gradwire_status, kParts> results{};
  for (std::uint32_t i = 0; i < kParts; ++i) rows.emplace_back(i);
  for (std::uint32_t i = 0; i < kParts; ++i)
    threads.emplace_back([&, i] {
      gradwire_options options = options_for(server.address().c_str());
      options.part = i;
      options.parts = kParts;
      options.flags = by_steps ? GRADWIRE_NO_THREADS : 0;
      CClient client(options, rows[i].oracle());
      ASSERT_EQ(client.status, GRADWIRE_OK) << client.message();
      results[i] = by_steps ? client.run_by_steps() : gradwire_run(client.client);
      EXPECT_EQ(results[i], GRADWIRE_DONE) << client.message();
      EXPECT_EQ(client.progress().stage, GRADWIRE_OVER);
      EXPECT_GT(client.progress().answered, 0u);
      EXPECT_GT(client.progress().bytes_up, 0u);
      EXPECT_GT(client.progress().bytes_down, 0u);
      EXPECT_FALSE(std::isnan(client.progress().loss));
      EXPECT_EQ(gradwire_run(client.client), GRADWIRE_DONE) << "a client that is done stays so";
    });
  const TrainResult there = server.wait();
  for (std::thread& thread : threads) thread.join();
  expect_same_run(here, there);
  for (std::uint32_t i = 0; i < kParts; ++i) {
    EXPECT_EQ(rows[i].run.dim, kDim);
    EXPECT_EQ(rows[i].run.client, i);
    EXPECT_EQ(rows[i].run.clients, kParts);
    EXPECT_EQ(rows[i].run.rounds, 40u);
    EXPECT_EQ(rows[i].run.precision, 8 * sizeof(Real));
  }
}

TEST(CClient, HasTheBitsOfTrain) {
  for (const KeyValues& keys : {kEf21, kFedAvg})
    for (const bool by_steps : {false, true}) {
      compare<double>(keys, "fp64", by_steps);
      compare<float>(keys, "fp32", by_steps);
    }
}

TEST_F(OneCClient, TrainsLocallyWithTheProgramsOwnSteps) {
  start({{"algorithm.name", "fedavg"},
         {"algorithm.step_size", 1},
         {"algorithm.local_steps", 3},
         {"algorithm.local_step_size", 0.25}});
  gradwire_oracle oracle = rows.oracle();
  oracle.train_f64 = [](void*, double* y, std::size_t d, const gradwire_training* training,
                        double* loss) -> std::int32_t {
    EXPECT_EQ(training->struct_size, sizeof *training);
    EXPECT_EQ(training->steps, 3u);
    EXPECT_EQ(training->step_size, 0.25);
    for (std::size_t j = 0; j < d; ++j) y[j] = 0.5;
    *loss = 1;
    return 0;
  };
  CClient client(options_for(address.c_str()), oracle);
  ASSERT_EQ(gradwire_run(client.client), GRADWIRE_DONE) << client.message();
  const TrainResult result = server->wait();
  for (const double value : result.model()) EXPECT_EQ(value, 0.5);
  EXPECT_EQ(client.progress().round, 39u);
}

TEST_F(OneCClient, CountsTestSamples) {
  start({{"run.evaluate_every", 10}});
  gradwire_oracle oracle = rows.oracle();
  oracle.test_count = 8;
  oracle.score = [](void*, const void*, std::size_t, std::uint64_t* correct) -> std::int32_t {
    *correct = 6;
    return 0;
  };
  CClient client(options_for(address.c_str()), oracle);
  ASSERT_EQ(gradwire_run(client.client), GRADWIRE_DONE) << client.message();
  EXPECT_EQ(server->wait().metrics("accuracy").back(), 0.75);
}

TEST_F(OneCClient, TellsTheServerOfACallbackThatFails) {
  start();
  rows.on_gradient = [](double&) { return 7; };
  CClient client(options_for(address.c_str()), rows.oracle());
  EXPECT_EQ(gradwire_run(client.client), GRADWIRE_E_CALLBACK);
  EXPECT_EQ(client.message(), "the callback gradient_f64 returned 7");
  EXPECT_TRUE(eventually([&] { return lines.have("CallbackFailed"); })) << lines.text();
  EXPECT_EQ(gradwire_run(client.client), GRADWIRE_E_STATE) << "it has ended";
  EXPECT_EQ(client.message(), "the callback gradient_f64 returned 7");
}

TEST_F(OneCClient, EndsIfBeginRefusesTheRun) {
  start();
  rows.begin_result = -1;
  CClient client(options_for(address.c_str()), rows.oracle());
  EXPECT_EQ(gradwire_run(client.client), GRADWIRE_E_CALLBACK);
  EXPECT_EQ(client.message(), "the callback begin returned -1");
}

TEST_F(OneCClient, LetsTheServerRefuseALossThatIsNotFinite) {
  start();
  rows.on_gradient = [](double& loss) {
    loss = std::numeric_limits<double>::quiet_NaN();
    return 0;
  };
  CClient client(options_for(address.c_str()), rows.oracle());
  EXPECT_EQ(gradwire_run(client.client), GRADWIRE_DONE) << client.message();
  EXPECT_EQ(server->wait().outcome(), "diverged");
}

TEST_F(OneCClient, NeedsTheGradientOfTheRunsPrecision) {
  start({{"precision", "fp32"}});
  CClient client(options_for(address.c_str()), rows.oracle());
  EXPECT_EQ(gradwire_run(client.client), GRADWIRE_E_ARGUMENT);
  EXPECT_NE(client.message().find("precision is \"fp32\""), std::string::npos) << client.message();
}

TEST_F(OneCClient, TakesRunsOfItsDimensionAlone) {
  start();
  gradwire_oracle oracle = rows.oracle();
  oracle.dim = kDim + 1;
  CClient client(options_for(address.c_str()), oracle);
  EXPECT_EQ(gradwire_run(client.client), GRADWIRE_E_ARGUMENT);
  EXPECT_NE(client.message().find("problem.dim is 12, but the oracle of this client has dimension 13"),
            std::string::npos)
      << client.message();
}

TEST_F(OneCClient, NamesARefusalOfTheServer) {
  server.emplace(Experiment::from({{"problem.kind", "quadratic"},
                                   {"problem.dim", 3},
                                   {"clients.count", 1},
                                   {"algorithm.name", "gd"},
                                   {"algorithm.step_size", 0.1}}),
                 ServerOptions{.state = folder.path() / "state"});
  CClient client(options_for(server->address().c_str()), rows.oracle());
  EXPECT_EQ(gradwire_run(client.client), GRADWIRE_E_ARGUMENT);
  EXPECT_NE(client.message().find("has an oracle of its own"), std::string::npos) << client.message();
}

TEST_F(OneCClient, GivesUpWithoutAServer) {
  gradwire_options options = options_for("127.0.0.1:1");
  options.give_up_after_ms = 1;
  CClient client(options, rows.oracle());
  EXPECT_EQ(gradwire_run(client.client), GRADWIRE_E_UNREACHABLE);
  EXPECT_NE(client.message().find("cannot connect to 127.0.0.1:1"), std::string::npos) << client.message();
}

TEST_F(OneCClient, RefusesCallsFromACallback) {
  start();
  gradwire_client* self = nullptr;
  std::string said;
  gradwire_status step = GRADWIRE_OK, run = GRADWIRE_OK, alive = GRADWIRE_E_STATE;
  rows.on_gradient = [&](double&) {
    gradwire_wait next{};
    next.struct_size = sizeof next;
    step = gradwire_step(self, &next);
    said = gradwire_message(self);
    run = gradwire_run(self);
    gradwire_destroy(self);
    alive = gradwire_keep_alive(self);
    return 0;
  };
  CClient client(options_for(address.c_str()), rows.oracle());
  self = client.client;
  EXPECT_EQ(gradwire_keep_alive(self), GRADWIRE_E_STATE) << "only for callbacks";
  EXPECT_EQ(gradwire_run(self), GRADWIRE_DONE) << client.message();
  EXPECT_EQ(step, GRADWIRE_E_STATE);
  EXPECT_EQ(
      said,
      "a callback may call gradwire_keep_alive() and gradwire_cancel() of its client, and nothing else");
  EXPECT_EQ(run, GRADWIRE_E_STATE);
  EXPECT_EQ(alive, GRADWIRE_OK);
}

TEST_F(OneCClient, IsCancelledByAnotherThread) {
  start({{"run.rounds", 1000000}});
  std::atomic<bool> began = false;
  rows.on_gradient = [&](double&) {
    began = true;
    return 0;
  };
  CClient client(options_for(address.c_str()), rows.oracle());
  std::thread other([&] {
    EXPECT_TRUE(eventually([&] { return began.load(); }));
    gradwire_cancel(client.client);
  });
  EXPECT_EQ(gradwire_run(client.client), GRADWIRE_E_CANCELLED);
  EXPECT_EQ(client.message(), "the client was cancelled");
  other.join();
  server->stop();
}

gradwire_client* to_cancel = nullptr;

TEST_F(OneCClient, IsCancelledByASignalHandler) {
  start({{"clients.count", 2}});  // so that it waits for the other client
  CClient client(options_for(address.c_str()), rows.oracle());
  to_cancel = client.client;
  struct sigaction before {
  }, action{};
  action.sa_handler = [](int) { gradwire_cancel(to_cancel); };
  ::sigaction(SIGALRM, &action, &before);
  const pthread_t runs = ::pthread_self();
  std::thread other([&] {
    EXPECT_TRUE(eventually([&] { return lines.have("waiting for 1 more"); })) << lines.text();
    ::pthread_kill(runs, SIGALRM);
  });
  EXPECT_EQ(gradwire_run(client.client), GRADWIRE_E_CANCELLED);
  other.join();
  ::sigaction(SIGALRM, &before, nullptr);
  server->stop();
}

TEST_F(OneCClient, KeepsItsConnectionInALongCallback) {
  for (const std::uint32_t flags : {0u, static_cast<std::uint32_t>(GRADWIRE_NO_THREADS)}) {
    start({{"server.heartbeat_ms", 1000}, {"run.rounds", 2}, {"run.evaluate_every", 0}});
    gradwire_client* self = nullptr;
    bool first = true;
    rows.on_gradient = [&](double&) {
      if (!std::exchange(first, false)) return 0;
      for (int tenth = 0; tenth < 45; ++tenth) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        if (flags != 0) gradwire_keep_alive(self);
      }
      return 0;
    };
    gradwire_options options = options_for(address.c_str());
    options.flags = flags;
    CClient client(options, rows.oracle());
    self = client.client;
    EXPECT_EQ(gradwire_run(self), GRADWIRE_DONE) << client.message();
    server->wait();
    EXPECT_FALSE(lines.have("silent")) << lines.text();
    server.reset();
    std::filesystem::remove_all(folder.path() / "state");
  }
}

TEST_F(OneCClient, HangsWithoutHoldingUpTheOthers) {
  start({{"clients.count", 2}, {"server.quorum", 0.5}, {"server.deadline_ms", 50}, {"run.rounds", 20}});
  std::atomic<bool> goes_on = false;
  rows.on_gradient = [&](double&) {
    EXPECT_TRUE(eventually([&] { return goes_on.load(); }));
    return 0;
  };
  CallerRows<double> other_rows{1};
  CClient client(options_for(address.c_str()), rows.oracle()),
      other(options_for(address.c_str()), other_rows.oracle());
  std::thread hangs([&] { EXPECT_EQ(gradwire_run(client.client), GRADWIRE_DONE) << client.message(); });
  std::atomic<int> answers = 0;
  other_rows.on_gradient = [&](double&) {
    if (++answers == 10) goes_on = true;
    return 0;
  };
  EXPECT_EQ(gradwire_run(other.client), GRADWIRE_DONE) << other.message();
  hangs.join();
  EXPECT_EQ(server->wait().rounds(), 20u);
}

int connect_to(const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

TEST_F(OneCClient, TakesBytesOneByOne) {
  start({{"run.rounds", 3}});
  struct Passing {
    std::string address;
    std::deque<std::thread> threads;
    ~Passing() {
      for (std::thread& thread : threads) thread.join();
    }
  } passing{address, {}};
  gradwire_options options = options_for(address.c_str());
  options.connect_user = &passing;
  options.connect = [](void* user, const char*) -> std::int32_t {
    auto& self = *static_cast<Passing*>(user);
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return -1;
    const int up = connect_to(self.address);
    const auto pass = [](int from, int to) {
      for (char byte = 0; ::recv(from, &byte, 1, 0) == 1;)
        if (::send(to, &byte, 1, MSG_NOSIGNAL) != 1) break;
      ::shutdown(to, SHUT_WR);
    };
    self.threads.emplace_back([pass, up, end = ends[1]] { pass(end, up); });
    self.threads.emplace_back([pass, up, end = ends[1]] { pass(up, end); });
    return ends[0];
  };
  {
    CClient client(options, rows.oracle());
    EXPECT_EQ(client.run_by_steps(), GRADWIRE_DONE) << client.message();
  }
  EXPECT_EQ(server->wait().rounds(), 3u);
}

TEST_F(OneCClient, IsMadeAndDestroyedAgainAndAgain) {
  start();
  for (int k = 0; k < 1000; ++k) {
    CClient client(options_for(address.c_str()), rows.oracle());
    ASSERT_EQ(client.status, GRADWIRE_OK) << client.message();
    if (k % 100 == 0) {
      gradwire_wait next{};
      next.struct_size = sizeof next;
      for (int step = 0; step < 10; ++step) gradwire_step(client.client, &next);
    }
  }
  server->stop();
}

TEST_F(OneCClient, ContinuesWithItsStateAfterAnEnd) {
  start({{"algorithm.name", "ef21"}, {"algorithm.compressor", "topk:k=2"}, {"run.rounds", 30}});
  const std::string state = (folder.path() / "client").string();
  gradwire_options options = options_for(address.c_str());
  options.state_dir = state.c_str();
  int left = 12;
  rows.on_gradient = [&](double&) { return left-- == 0 ? 1 : 0; };
  {
    CClient client(options, rows.oracle());
    EXPECT_EQ(gradwire_run(client.client), GRADWIRE_E_CALLBACK);
    CClient second(options, rows.oracle());
    EXPECT_EQ(second.status, GRADWIRE_E_STATE) << "the folder is in use";
    EXPECT_NE(second.message(), "");
  }
  rows.on_gradient = nullptr;
  server.reset();
  start({{"algorithm.name", "ef21"}, {"algorithm.compressor", "topk:k=2"}, {"run.rounds", 30}});
  options.server = address.c_str();
  CClient again(options, rows.oracle());
  EXPECT_EQ(gradwire_run(again.client), GRADWIRE_DONE) << again.message();
  std::vector<Rows<double>> oracles = {rows.rows};
  EXPECT_TRUE(std::ranges::equal(train(oracles, custom({{"clients.count", 1},
                                                        {"algorithm.name", "ef21"},
                                                        {"algorithm.compressor", "topk:k=2"},
                                                        {"algorithm.step_size", 0.2},
                                                        {"run.rounds", 30}}))
                                     .model(),
                                 server->wait().model()));
}

}  // namespace
}  // namespace gradwire
