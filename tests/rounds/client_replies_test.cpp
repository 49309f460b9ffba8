// Tests of clients whose state follows from their used replies: they save the replies instead of the
// requests.
#include <gtest/gtest.h>
#include <set>
#include <utility>

#include "config/experiment_file.h"
#include "proto/wire/codec_context.h"
#include "simulation/prepare.h"
#include "tests/algorithms/every_algorithm.h"
#include "tests/simulated/simulated_network.h"
#include "tests/wire/codec_support.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_for;

Result<UplinkView<double>> received(UplinkSlot<double>& slot, const CodecContext& context, ClientId client,
                                    const Packet& packet) {
  const std::string whole = packet.head + packet.payload;
  return receive(slot, context, client, std::as_bytes(std::span(whole)));
}

// A run of one algorithm whose server uses only the replies of every second round. Each client has a second
// runtime that computes nothing: it gets the replies as they are sent.
class Followed {
 public:
  Followed(const Federation<double>& federation, const AlgorithmInfo& algorithm)
      : run_context_(federation.run_context(half_of_the_clients(spec_for(algorithm), algorithm.traits))),
        context_(codec_context(*run_context_, {})),
        codec_(context_),
        server_(make_server<double>(run_context_)) {
    for (ClientId i = 0; i < run_context_->n; ++i) {
      Oracle<double>& oracle = *federation.oracles[i];
      clients_.push_back(std::make_unique<Client>(run_context_, i, oracle, context_));
    }
  }

  bool follows_replies() const { return clients_[0]->computes.follows_replies(); }
  std::uint32_t used() const { return used_; }

  void round(std::uint64_t request_id) {
    std::vector<ClientId> cohort;
    server_->cohort(cohort);
    const Downlink<double> body = server_->broadcast();
    std::vector<UplinkView<double>> replies;
    for (const ClientId i : cohort) {
      Client& client = *clients_[i];
      Request<double> request;
      request.request_id = request_id;
      request.committed = client.committed;
      request.body = &body;
      replies.push_back(*client.computes.handle(request, scratch_));
      ASSERT_EQ(replies.back().status, ReplyStatus::kReply);
      client.follows.settle(client.committed);
      const Packet packet = packet_of(codec_.encode(replies.back()));
      const auto decoded = received(client.slot, context_, i, packet);
      ASSERT_TRUE(decoded) << decoded.error().message;
      client.follows.recall(client.committed, *decoded);
    }
    if (request_id % 2 == 0 || !server_->apply(replies)) return;
    used_ += 1;
    for (const ClientId i : cohort) clients_[i]->committed = request_id;
  }
  void expect_same_states(const std::string& algorithm) {
    for (auto& client : clients_) {
      client->computes.settle(client->committed);
      client->follows.settle(client->committed);
      EXPECT_EQ(client->follows.save(), client->computes.save()) << algorithm;
    }
  }

 private:
  static AlgorithmSpec half_of_the_clients(AlgorithmSpec spec, const AlgorithmTraits& traits) {
    if (traits.partial) spec.participation = 0.5;
    return spec;
  }

  struct Client {
    Client(const std::shared_ptr<const RunContext<double>>& run_context, ClientId i, Oracle<double>& oracle,
           const CodecContext& context)
        : computes(run_context, i, oracle), follows(run_context, i, oracle), slot(context) {}
    ClientRuntime<double> computes, follows;
    UplinkSlot<double> slot;
    std::uint64_t committed = 0;
  };

  std::shared_ptr<const RunContext<double>> run_context_;
  CodecContext context_;
  Codec<double> codec_;
  std::unique_ptr<ServerAlgorithm<double>> server_;
  std::vector<std::unique_ptr<Client>> clients_;
  Scratch<double> scratch_;
  std::uint32_t used_ = 0;
};

TEST(ClientReplies, RestoreTheStateOfEveryAlgorithmThatFollowsReplies) {
  const Federation<double> federation(6, 9);
  std::set<std::string> followed;
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    Followed run(federation, algorithm);
    if (!run.follows_replies()) continue;
    followed.insert(std::string(algorithm.traits.name));
    for (std::uint64_t request_id = 1; request_id <= 40; ++request_id) run.round(request_id);
    EXPECT_GE(run.used(), 10u);
    run.expect_same_states(std::string(algorithm.traits.name));
  }
  const std::set<std::string> expected = {"adiana",  "cofig",    "diana",  "ef21",   "ef21_hb", "ef21_plus",
                                          "ef21_pp", "ef21_sgd", "ef21_w", "frecon", "scaffold"};
  EXPECT_EQ(followed, expected) << "docs/explanation/reliability.md names them";
}

// The client crashes after it recorded an answer, but before it saved the state that the server sent back.
TEST(ClientReplies, AreNotCommittedToADifferentState) {
  const Federation<double> federation(1, 9);
  const auto run_context = federation.run_context(testing::spec_of("ef21", "topk:k=2", {}, "0.1"));
  ClientRuntime<double> before(run_context, 0, *federation.oracles[0]),
      after(run_context, 0, *federation.oracles[0]);
  Scratch<double> scratch;
  const Vec<double> x(9, 1.0), g_i(9, 0.5);
  const Downlink<double> body{3, 0, {Payload<double>::dense(x)}}, resync{3, 0, {Payload<double>::dense(g_i)}};
  Request<double> request{RequestKind::kRound, 7, 5, &body, &resync};
  const Uplink<double> answer = *before.handle(request, scratch);
  ASSERT_EQ(answer.status, ReplyStatus::kNeedsState);
  // The client uses the resync only after it reported kNeedsState.
  const Uplink<double> restored = *before.handle(request, scratch);
  ASSERT_EQ(restored.status, ReplyStatus::kReply);

  after.settle(5);
  after.recall(5, restored);  // computed from the restored state, which this runtime lacks
  request = {RequestKind::kRound, 8, 7, &body, nullptr};
  EXPECT_EQ(before.handle(request, scratch)->status, ReplyStatus::kReply);
  EXPECT_EQ(after.handle(request, scratch)->status, ReplyStatus::kNeedsState);
}

// A server of one client, without a network.
class OneClient {
 public:
  OneClient(const std::string& algorithm, std::uint32_t dim)
      : experiment_(prepare(parse_experiment("[problem]\nkind = \"quadratic\"\ndim = " + std::to_string(dim) +
                                                 "\n[clients]\ncount = 1\n[algorithm]\n" + algorithm,
                                             "one.toml"))
                        .experiment),
        run_context_(run_context_of(experiment_, dim)),
        client_(experiment_, 0, true, 1),
        context_(codec_context(*run_context_, {})),
        slot_(context_) {
    server_ = make_server<double>(run_context_);
  }

  SimulatedClient& client() { return client_; }
  void round(bool uses) {
    Codec<double> codec(context_);
    const Downlink<double> body = server_->broadcast();
    Request<double> request;
    request.request_id = ++request_id_;
    request.committed = committed_;
    request.body = &body;
    request_before_ =
        std::exchange(request_, packet_of(codec.encode(request, codec.encode_body(body).get(), nullptr)));
    Packet reply;
    ASSERT_TRUE(client_.answer(request_, reply));
    const auto uplink = received(slot_, context_, 0, reply);
    ASSERT_TRUE(uplink) << uplink.error().message;
    ASSERT_EQ(uplink->status, ReplyStatus::kReply)
        << "request id " << request_id_ << ": the client has lost its state";
    if (!uses) return;
    server_->apply(Replies<double>(&*uplink, 1));
    committed_ = request_id_;
  }
  // Delivers the second last request again. Returns whether the client answers.
  bool answers_late_request() {
    Packet reply;
    return client_.answer(request_before_, reply);
  }
  Vec<double> model() const { return {server_->model().begin(), server_->model().end()}; }

 private:
  static std::shared_ptr<const RunContext<double>> run_context_of(const ExperimentSpec& e,
                                                                  std::uint32_t dim) {
    auto run_context = std::make_shared<RunContext<double>>();
    run_context->seed = e.seed;
    run_context->n = 1;
    run_context->d = dim;
    run_context->x0 = Vec<double>(dim);
    run_context->algorithm = algorithm_spec(e);
    run_context->compressor = uplink_compressor(run_context->algorithm, dim, 1);
    run_context->keep_client_state_replicas = true;
    return run_context;
  }

  ExperimentSpec experiment_;
  std::shared_ptr<const RunContext<double>> run_context_;
  SimulatedClient client_;
  CodecContext context_;
  UplinkSlot<double> slot_;
  std::unique_ptr<ServerAlgorithm<double>> server_;
  Packet request_, request_before_;
  std::uint64_t request_id_ = 0, committed_ = 0;
};

constexpr const char* kEf21 = "name = \"ef21\"\ncompressor = \"topk:k=10\"\n";

TEST(ClientReplies, StayCompressedOnDisk) {
  constexpr std::uint32_t kDim = 20'000;
  constexpr std::size_t kStateBytes = 8 * kDim;
  OneClient run(kEf21, kDim);
  std::size_t most = 0;
  for (int k = 0; k < 200; ++k) {
    run.round(true);
    most = std::max(most, run.client().bytes_on_disk());
  }
  // The client sends its first reply uncompressed; every kept snapshot, and the one being written, has the
  // state.
  EXPECT_LT(most, 5 * kStateBytes) << "one request is as long as a state";
}

TEST(ClientReplies, RestoreAClientKilledAfterAnyRound) {
  for (const std::string algorithm :
       {kEf21, "name = \"diana\"\ncompressor = \"randk:k=10\"\n", "name = \"scaffold\"\nlocal_steps = 2\n"}) {
    OneClient quiet(algorithm, 30), killed(algorithm, 30);
    for (int k = 0; k < 100; ++k) {
      const bool uses = k % 3 != 1;
      quiet.round(uses);
      killed.round(uses);
      if (k % 2 == 0 || k % 7 == 0) killed.client().die(false);
    }
    EXPECT_EQ(killed.model(), quiet.model()) << algorithm;
  }
}

// This client stores requests. So many late ones arrive that it takes a snapshot, which keeps only the last
// record.
TEST(ClientRequests, KeepTheUsedRequestWhenLateOnesArrive) {
  OneClient run("name = \"ef21_sgdm\"\ncompressor = \"topk:k=10\"\n", 30);
  for (int k = 0; k < 3; ++k) run.round(true);
  for (int k = 0; k < 100; ++k) EXPECT_FALSE(run.answers_late_request());
  run.client().die(false);
  run.round(true);  // its request says that the previous answer was used
}

}  // namespace
}  // namespace gradwire
