// A stop token ends a client wherever it is, and a stopped server or client resumes.
#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <fstream>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire/control_frame.h"
#include "tests/api/network/network_fixture.h"

namespace gradwire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSoon{5};  // far less than the wait that each test interrupts

// A server's socket that the test plays.
class Listening {
 public:
  explicit Listening(int backlog = 8) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(fd_, backlog), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port_ = ntohs(at.sin_port);
  }
  ~Listening() { ::close(fd_); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // Accepts a connection, and waits for its first bytes.
  int accept_client() const {
    const int client = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    pollfd ready{client, POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 30'000), 1);
    return client;
  }
  // Returns whether a socket of this machine waits for the answer to its connect().
  bool keeps_waiting() const {
    std::ifstream sockets("/proc/net/tcp");
    char to[16];
    std::snprintf(to, sizeof to, ":%04X 02 ", port_);  // SYN_SENT
    for (std::string line; std::getline(sockets, line);)
      if (line.find(to) != line.npos) return true;
    return false;
  }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

// Stops the client, and expects that it returns soon, without an error.
void expect_to_end(ClientThread& client) {
  const auto begin = Clock::now();
  client.stop();
  EXPECT_NO_THROW(client.join());
  EXPECT_LT(Clock::now() - begin, kSoon);
}

class StoppedClient : public ::testing::Test {
 protected:
  ClientOptions options(const std::string& server) { return {.server = server, .log = lines.log()}; }

  Rows<double> oracle = Rows<double>(1);
  Lines lines;
};

TEST_F(StoppedClient, EndsBeforeItConnects) {
  std::stop_source stopped;
  stopped.request_stop();
  run_client(oracle, {.server = "127.0.0.1:1", .stop = stopped.get_token()});
}

TEST_F(StoppedClient, EndsWhileItWaitsToTryAgain) {
  const Listening server;
  ClientThread client(oracle, options(server.address()));
  const int peer = server.accept_client();
  const std::string full = error_frame("the server is full", false, 600'000);
  ASSERT_EQ(::send(peer, full.data(), full.size(), MSG_NOSIGNAL), static_cast<ssize_t>(full.size()));
  ASSERT_TRUE(eventually([&] { return lines.have("trying again in 600"); })) << lines.text();
  expect_to_end(client);
  ::close(peer);
}

TEST_F(StoppedClient, EndsWhileItWaitsForAnAnswer) {
  const Listening server;
  ClientThread client(oracle, options(server.address()));
  const int peer = server.accept_client();
  expect_to_end(client);
  ::close(peer);
}

TEST_F(StoppedClient, EndsWhileItConnects) {
  const Listening server(0);
  std::vector<int> waiting;  // connections that fill the queue of the kernel
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string address = server.address();
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  for (int k = 0; k < 8 && !server.keeps_waiting(); ++k) {
    waiting.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    (void)::connect(waiting.back(), reinterpret_cast<sockaddr*>(&to), sizeof to);
  }
  if (!server.keeps_waiting()) GTEST_SKIP() << "this system accepts all connections";
  ::close(waiting.back());  // which leaves no socket that waits, except the client's
  waiting.pop_back();
  ASSERT_TRUE(eventually([&] { return !server.keeps_waiting(); }));
  ClientThread client(oracle, options(address));
  ASSERT_TRUE(eventually([&] { return server.keeps_waiting() || client.over(); }));
  expect_to_end(client);
  for (const int fd : waiting) ::close(fd);
}

TEST_F(StoppedClient, EndsWhileItsRunWaitsForOthers) {
  const TemporaryFolder folder;
  Server server(custom({{"algorithm.name", "gd"}, {"algorithm.step_size", 0.1}}), {.state = folder.path()});
  ClientThread client(oracle, options(server.address()));
  ASSERT_TRUE(eventually([&] { return lines.have("joined as client 0 of 4"); })) << lines.text();
  expect_to_end(client);
}

// An oracle whose gradient ends only when it is stopped.
class Endless final : public Rows<double> {
 public:
  Endless() : Rows(1) {}
  std::optional<double> compute(std::span<const double>, Batch, std::span<double>,
                                const GradientOptions& options) override {
    begun = true;
    while (!stopped(options.stop)) std::this_thread::yield();
    return std::nullopt;
  }
  std::atomic<bool> begun = false;
};

TEST_F(StoppedClient, EndsInTheMiddleOfAGradient) {
  const TemporaryFolder folder;
  Server server(custom({{"algorithm.name", "gd"}, {"algorithm.step_size", 0.1}}).with("clients.count", 1),
                {.state = folder.path()});
  Endless endless;
  ClientThread client(endless, options(server.address()));
  ASSERT_TRUE(eventually([&] { return endless.begun.load(); }));
  expect_to_end(client);
}

// An oracle that stops its client in a call, as a process that is killed there.
class Dying final : public Rows<double> {
 public:
  Dying(std::uint32_t seed, int calls) : Rows(seed, kDim, 5 + 3 * seed), calls_(calls) {}
  double loss_and_gradient(std::span<const double> x, Batch batch, std::span<double> gradient) override {
    if (--calls_ == 0) source.request_stop();
    return Rows::loss_and_gradient(x, batch, gradient);
  }
  std::stop_source source;

 private:
  int calls_;
};

TEST(ResumedClient, ContinuesFromItsStateFolder) {
  const Experiment experiment = custom({{"algorithm.name", "diana"},
                                        {"algorithm.compressor", "randk:k=3"},
                                        {"algorithm.step_size", 0.1},
                                        {"algorithm.alpha", 0.2}});
  std::vector<Rows<double>> oracles = rows_of_all<double>();
  const TrainResult here = train(oracles, experiment);
  const TemporaryFolder folder;
  Server server(experiment, {.state = folder.path() / "server"});
  std::deque<ClientThread> others;
  for (std::uint32_t i = 1; i < kParts; ++i)
    others.emplace_back(oracles[i], ClientOptions{.server = server.address(), .part = i, .parts = kParts});
  for (const int calls : {12, 9, 1000}) {
    Dying oracle(0, calls);
    Lines lines;
    run_client(oracle, {.server = server.address(),
                        .name = "first",
                        .state = folder.path() / "client",
                        .part = 0,
                        .parts = kParts,
                        .stop = oracle.source.get_token(),
                        .log = lines.log()});
    EXPECT_EQ(oracle.source.stop_requested(), calls < 1000);
  }
  expect_same_run(here, server.wait());
  for (ClientThread& other : others) other.join();
}

TEST(StoppedServer, EndsBeforeTheRunBegins) {
  const TemporaryFolder folder;
  Server server(custom({{"algorithm.name", "gd"}, {"algorithm.step_size", 0.1}}), {.state = folder.path()});
  server.stop();
  const TrainResult result = server.wait();
  EXPECT_EQ(result.outcome(), "stopped");
  EXPECT_TRUE(result.model().empty());
  EXPECT_TRUE(result.rows().empty());
  EXPECT_EQ(result.trouble(), "experiment: stopped before the run began");
}

TEST(StoppedServer, ResumesInTheSameFolderWithTheSameClients) {
  const Experiment experiment = custom(
      {{"algorithm.name", "ef21"}, {"algorithm.compressor", "topk:k=2"}, {"algorithm.step_size", 0.2}});
  std::vector<Rows<double>> oracles = rows_of_all<double>();
  const TemporaryFolder folder;
  ServerOptions options = {.state = folder.path()};
  std::optional<AllClients> clients;
  for (const std::uint32_t last : {9u, 22u, 1000u}) {
    Server* self = nullptr;
    std::atomic<bool> ready = false;
    options.on_row = [&](const MetricsRow& row) {
      while (!ready) std::this_thread::yield();
      if (row.round == last) self->stop();
      return true;
    };
    Server server(experiment, options);
    self = &server;
    ready = true;
    options.listen = server.address();
    if (!clients) clients.emplace(server.address(), oracles);
    const TrainResult result = server.wait();
    if (last == 1000) {
      expect_same_run(train(oracles, experiment), result);
      continue;
    }
    EXPECT_EQ(result.outcome(), "stopped");
    EXPECT_GE(result.rounds(), last);
    EXPECT_LT(result.rounds(), 40u);
    EXPECT_EQ(result.rows().size(), result.rounds() + 1);
    EXPECT_NE(result.trouble().find("stopped after round"), std::string::npos) << result.trouble();
  }
  clients->join();
}

TEST(StoppedServer, GivesUpTheRoundAtASecondCall) {
  const Experiment experiment = custom({{"algorithm.name", "gd"}, {"algorithm.step_size", 0.1}});
  std::vector<Rows<double>> oracles = rows_of_all<double>();
  const TemporaryFolder folder;
  Lines lines;
  ServerOptions options = {.state = folder.path(), .log = lines.log()};
  {
    Server server(experiment, options);
    options.listen = server.address();
    std::deque<ClientThread> clients;
    for (std::uint32_t i = 1; i < kParts; ++i)
      clients.emplace_back(oracles[i], ClientOptions{.server = server.address(), .part = i, .parts = kParts});
    Dying dying(0, 12);
    run_client(dying, {.server = server.address(),
                       .name = "first",
                       .part = 0,
                       .parts = kParts,
                       .stop = dying.source.get_token()});
    ASSERT_TRUE(eventually([&] { return lines.have("left"); })) << lines.text();
    server.stop();
    server.stop();
    const TrainResult result = server.wait();
    EXPECT_EQ(result.outcome(), "stopped");
    EXPECT_EQ(result.model().size(), kDim);
    EXPECT_LT(result.rounds(), 12u);
  }
  Server server(experiment, options);
  AllClients clients(server.address(), oracles);
  expect_same_run(train(oracles, experiment), server.wait());
  clients.join();
}

TEST(StoppedServer, StopsAndJoinsWhenItIsDestroyed) {
  const Experiment experiment = custom({{"algorithm.name", "gd"}, {"algorithm.step_size", 0.1}});
  std::vector<Rows<double>> oracles = rows_of_all<double>();
  const TemporaryFolder folder;
  ServerOptions options = {.state = folder.path()};
  std::optional<AllClients> clients;
  {
    std::atomic<bool> begun = false;
    options.on_row = [&](const MetricsRow&) {
      begun = true;
      return true;
    };
    Server server(experiment.with("run.rounds", 100'000'000), options);
    clients.emplace(server.address(), oracles);
    ASSERT_TRUE(eventually([&] { return begun.load(); }));
  }
  clients.reset();
  Server again(experiment.with("run.rounds", 100'000'000), options);  // the folder is free
}

}  // namespace
}  // namespace gradwire
