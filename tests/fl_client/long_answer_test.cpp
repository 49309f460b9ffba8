// Clients with long computations still send heartbeats and read the server's messages.
#include <future>
#include <gtest/gtest.h>
#include <thread>

#include "config/experiment_file.h"
#include "config/settings.h"
#include "fl_client/client.h"
#include "fl_server/net/tcp_sockets.h"
#include "fl_server/plan_of_joins.h"
#include "fl_server/sessions/tcp_transport.h"
#include "proto/wire/codec_context.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;
using Kind = Event<double>::Kind;

// An experiment whose first step takes hours. Its model has 16 MB, more than sockets hold.
constexpr const char* kEndless = R"(
[problem]
kind = "quadratic"
dim = 2000000
[clients]
count = 1
[algorithm]
name = "fedavg"
local_steps = 1000000000
local_step_size = 0.001
)";

class LongAnswerTest : public ::testing::Test {
 protected:
  LongAnswerTest() : loaded(parse_experiment(kEndless, "endless.toml")) {
    SessionManagerOptions options;
    options.clients = 1;
    options.experiment = pack_experiment(loaded.experiment);
    options.times.heartbeat = milliseconds(1000);
    options.times.write_stall = milliseconds(1500);
    options.log = [this](const LogLine& line) { lines.push_back(line.text); };
    session_manager = std::make_unique<SessionManager>(options, listen_on_tcp("127.0.0.1:0"));
    client = std::async(std::launch::async, [address = session_manager->address()] {
      ClientSettings client_options;
      client_options.server = address;
      join_and_answer(client_options);
    });
    EXPECT_TRUE(session_manager->gather(std::chrono::minutes(1)));
    const RunPlan plan = plan_of_joins(loaded, session_manager->table());
    const auto run_context = make_run_context<double>(plan, Role::kServer);
    transport = std::make_unique<TcpTransport<double>>(*session_manager, codec_context(*run_context, {}),
                                                       start_frame(plan, 1));
    x.assign(plan.d, 1);
    body.parts = {Payload<double>::dense(x)};
  }
  void send(std::uint64_t request_id, RequestKind kind = RequestKind::kRound) {
    Request<double> request;
    request.request_id = request_id;
    request.kind = kind;
    request.body = kind == RequestKind::kShutdown ? nullptr : &body;
    transport->send(0, request);
  }
  // Repeats the request for this time, as a server does at deadlines. The client must stay connected.
  void ask_for(milliseconds time, std::uint64_t request_id) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      send(request_id);
      const Event<double> event = transport->next(transport->now() + 0.3);
      ASSERT_EQ(event.kind, Kind::kTimeout) << (lines.empty() ? "" : lines.back());
    }
  }
  void expect_the_client_ends() {
    EXPECT_EQ(client.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  }

  const LoadedExperiment loaded;
  std::vector<std::string> lines;
  std::future<void> client;
  std::unique_ptr<SessionManager> session_manager;
  std::unique_ptr<TcpTransport<double>> transport;
  Vec<double> x;
  Downlink<double> body;
};

TEST_F(LongAnswerTest, KeepTheConnectionThroughRepeatedRequestsAndEndWithTheRun) {
  ask_for(milliseconds(4000), 1);
  ask_for(milliseconds(1000), 2);
  send(3, RequestKind::kShutdown);
  EXPECT_TRUE(session_manager->finish(std::chrono::seconds(60)))
      << "the shutdown is heard in the middle of the step";
  expect_the_client_ends();
  client.get();
}

TEST_F(LongAnswerTest, StopAtOnceForANewerRequest) {
  ask_for(milliseconds(1000), 1);
  const double asked = transport->now();
  send(2, RequestKind::kEvaluate);
  const Event<double> event = transport->next(asked + 60);
  ASSERT_EQ(event.kind, Kind::kReply) << "the step would take hours";
  EXPECT_EQ(event.up.request_id, 2u);
  send(3, RequestKind::kShutdown);
  EXPECT_TRUE(session_manager->finish(std::chrono::seconds(60)));
  expect_the_client_ends();
  client.get();
}

TEST_F(LongAnswerTest, EndWhenTheServerRefusesThem) {
  ask_for(milliseconds(500), 1);
  session_manager->abandon("there is no more work", true, 0);
  expect_the_client_ends();
  EXPECT_THROW(client.get(), ClientRefused);
}

}  // namespace
}  // namespace gradwire
