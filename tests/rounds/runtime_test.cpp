#include "rounds/runtime.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "fl_client/stoppable_oracle.h"
#include "rounds/memo_oracle.h"
#include "tests/algorithms/every_algorithm.h"
#include "tests/algorithms/federation.h"

namespace gradwire {
namespace {

// An oracle that counts the requested gradients, and stops in the middle of one on request.
class Counting final : public Oracle<double> {
 public:
  explicit Counting(Oracle<double>& inner) : inner_(inner) {}
  std::size_t dim() const override { return inner_.dim(); }
  std::size_t sample_count() const override { return inner_.sample_count(); }
  double loss_and_gradient(View<double> x, Batch batch, Out<double> gradient) override {
    ++calls;
    if (stops_next) {
      stops_next = false;
      gradient[0] = 0;  // half done
      throw OracleStopped();
    }
    return inner_.loss_and_gradient(x, batch, gradient);
  }
  int calls = 0;
  bool stops_next = false;

 private:
  Oracle<double>& inner_;
};

Request<double> request_of(const Downlink<double>& body, std::uint64_t request_id) {
  Request<double> request;
  request.request_id = request_id;
  request.body = &body;
  return request;
}

TEST(ClientRuntime, ComputesARepeatedRequestOnceAndRepeatsTheAnswer) {
  const testing::Federation<double> federation(3, 9);
  AlgorithmSpec spec = testing::spec_of("ef21_sgd", "topk:k=2");
  spec.batch = 1;  // stochastic gradients are not kept for reuse
  const auto run_context = federation.run_context(spec);
  Counting oracle(*federation.oracles[1]);
  ClientRuntime<double> client(run_context, 1, oracle);
  const auto server = make_server<double>(run_context);
  const Downlink<double> body = server->broadcast();
  const Request<double> request = request_of(body, 1);
  Scratch<double> scratch;
  const Uplink<double>* first = client.handle(request, scratch);
  ASSERT_NE(first, nullptr);
  ASSERT_EQ(first->status, ReplyStatus::kReply);
  const int calls = oracle.calls;
  EXPECT_GT(calls, 0);
  const double grad_calls = first->grad_calls, loss = first->loss;
  const Uplink<double>* again = client.handle(request, scratch);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(oracle.calls, calls);
  EXPECT_EQ(again->grad_calls, grad_calls);
  EXPECT_EQ(again->loss, loss);
  EXPECT_EQ(again->request_id, 1u);
}

TEST(ClientRuntime, StoppedComputationsLeaveNoTrace) {
  const testing::Federation<double> federation(3, 9);
  const auto run_context = federation.run_context(testing::spec_of("ringmaster", "identity", {}, "0.1"));
  Counting oracle(*federation.oracles[1]), untouched(*federation.oracles[1]);
  ClientRuntime<double> client(run_context, 1, oracle), twin(run_context, 1, untouched);
  const auto server = make_server<double>(run_context);
  const Downlink<double> body = server->broadcast();
  Scratch<double> scratch, twins;
  std::uint64_t request_id = 0;
  for (const RequestKind kind : {RequestKind::kRound, RequestKind::kEvaluate, RequestKind::kRound}) {
    Request<double> request = request_of(body, ++request_id);
    request.kind = kind;
    oracle.stops_next = true;
    if (request_id < 3) {  // the gradient of the third is stored
      EXPECT_THROW(client.handle(request, scratch), OracleStopped);
    }
    for (int again = 0; again < 2; ++again) {
      const Uplink<double>* got = client.handle(request, scratch);
      const Uplink<double>* want = twin.handle(request, twins);
      ASSERT_NE(got, nullptr);
      EXPECT_EQ(got->loss, want->loss);
      EXPECT_TRUE(std::ranges::equal(got->parts[0].values, want->parts[0].values)) << request_id;
      request.request_id = got->request_id;
    }
    oracle.stops_next = false;
  }
}

TEST(MemoOracle, ForgetsAStoppedEvaluation) {
  const testing::Federation<double> federation(3, 9);
  Counting inner(*federation.oracles[1]);
  MemoOracle<double> oracle(inner);
  const std::vector<double> first(inner.dim(), 0.5), second(inner.dim(), -0.25);
  oracle.evaluate(first);
  inner.stops_next = true;
  EXPECT_THROW(oracle.evaluate(second), OracleStopped);
  std::vector<double> got(inner.dim()), want(inner.dim());
  EXPECT_EQ(oracle.loss_and_gradient(second, {}, got), inner.loss_and_gradient(second, {}, want));
  EXPECT_EQ(got, want);
}

TEST(ClientRuntime, MeasuresTheLossOfAnEvaluationWithoutItsGradient) {
  const testing::Federation<double> federation(3, 9);
  for (const bool is_stochastic : {false, true}) {
    AlgorithmSpec spec = testing::spec_of("gd", "identity", {}, "0.1");
    spec.batch = is_stochastic ? 2 : 0;
    const auto run_context = federation.run_context(spec);
    ClientRuntime<double> client(run_context, 1, *federation.oracles[1]),
        twin(run_context, 1, *federation.oracles[1]);
    const auto server = make_server<double>(run_context);
    const Downlink<double> body = server->broadcast();
    Scratch<double> scratch, twins;
    Request<double> request = request_of(body, 1);
    request.kind = RequestKind::kEvaluate;
    const double loss = twin.handle(request, twins)->loss;
    request.kind = RequestKind::kMeasure;
    EXPECT_TRUE(client.accepts(request));
    for (int again = 0; again < 2; ++again) {
      const Uplink<double>* const got = client.handle(request, scratch);
      ASSERT_NE(got, nullptr);
      EXPECT_EQ(got->loss, loss);
      EXPECT_EQ(got->parts.size(), 0u);
      EXPECT_EQ(got->grad_calls, 0u);
      EXPECT_EQ(got->status, ReplyStatus::kReply);
    }
  }
}

// With a quorum, or after lost messages, a client joins the run in a later round.
TEST(ClientRuntime, SendsTheGradientNamedByInitIfItJoinsLate) {
  const testing::Federation<double> federation(3, 9);
  for (const char* algorithm : {"ef21", "ef21_plus", "ef21_hb", "ef21_sgd"}) {
    for (const char* init : {"gradient", "compressed"}) {
      const AlgorithmSpec spec = testing::spec_of(algorithm, "topk:k=2", {{"init", init}});
      const auto run_context = federation.run_context(spec);
      ClientRuntime<double> client(run_context, 1, *federation.oracles[1]);
      const auto server = make_server<double>(run_context);
      Downlink<double> body = server->broadcast();  // views memory of the server
      body.round = 4;
      Scratch<double> scratch;
      const Uplink<double>* reply = client.handle(request_of(body, 9), scratch);
      ASSERT_NE(reply, nullptr);
      ASSERT_EQ(reply->status, ReplyStatus::kReply);
      EXPECT_EQ(reply->parts[0].shape == Shape::kDense, std::string(init) == "gradient")
          << algorithm << " " << init;
    }
  }
}

TEST(ClientRuntime, TakesLowerRequestIdsOnlyFromANewConnection) {
  const testing::Federation<double> federation(3, 9);
  const auto run_context = federation.run_context(testing::spec_of("gd", "identity", {}, "0.1"));
  ClientRuntime<double> client(run_context, 1, *federation.oracles[1]);
  const auto server = make_server<double>(run_context);
  const Downlink<double> body = server->broadcast();
  Scratch<double> scratch;
  for (const RequestKind kind : {RequestKind::kRound, RequestKind::kEvaluate}) {
    Request<double> request = request_of(body, 90);
    request.kind = kind;
    client.expect_any_request_id();
    ASSERT_NE(client.handle(request, scratch), nullptr);
    for (const RequestKind late : {RequestKind::kRound, RequestKind::kEvaluate}) {
      request.kind = late;
      request.request_id = 7;
      EXPECT_EQ(client.handle(request, scratch), nullptr) << "a late request has no answer";
    }
    client.expect_any_request_id();
    const Uplink<double>* const reply = client.handle(request, scratch);
    ASSERT_NE(reply, nullptr);
    EXPECT_EQ(reply->request_id, 7u);
  }
}

// In ef21_p, the client's replica has the round number that the restored server sends, but other bits.
TEST(ClientRuntime, DropsRoundsThatARestoredServerHasLost) {
  const testing::Federation<double> federation(3, 9);
  const auto run_context = federation.run_context(
      testing::spec_of("ef21_p", "identity", {{"compressor_down", "topk:k=2"}}, "0.1"));
  Counting oracle(*federation.oracles[1]);
  ClientRuntime<double> client(run_context, 1, oracle);
  const auto server = make_server<double>(run_context);
  Scratch<double> scratch;
  const auto play = [&](std::uint64_t request_id, std::uint64_t committed) {
    const Downlink<double> body = server->broadcast();
    Request<double> request = request_of(body, request_id);
    request.committed = committed;
    const Uplink<double> used = *client.handle(request, scratch);
    std::vector<double> values(used.parts[0].values.begin(), used.parts[0].values.end());
    const Payload<double> part = Payload<double>::dense(values);
    std::vector<UplinkView<double>> replies;
    for (ClientId c = 0; c < 3; ++c) {
      UplinkView<double> reply(used, std::span(&part, 1));
      reply.client = c;
      replies.push_back(reply);
    }
    server->apply(replies);
  };
  play(11, 0);
  const std::string copy = server->save();
  play(12, 11);
  play(13, 12);
  ASSERT_TRUE(server->load(copy));
  const Downlink<double> first = server->broadcast();
  Request<double> unheard = request_of(first, 21);
  unheard.committed = 11;
  EXPECT_TRUE(client.is_ahead_of(unheard)) << "the server had named request id 12";
  // Rounds 2 and 3 end differently than before, and this client is not asked in round 2.
  std::vector<double> values(9, 0.5);
  const Payload<double> part = Payload<double>::dense(values);
  std::vector<UplinkView<double>> replies;
  for (ClientId c = 0; c < 3; ++c) {
    replies.emplace_back(UplinkHeader{}, std::span(&part, 1));
    replies.back().client = c;
  }
  server->apply(replies);
  const Downlink<double> body = server->broadcast();
  Request<double> request = request_of(body, 22);
  request.committed = 11;
  client.expect_any_request_id();
  ASSERT_EQ(client.handle(request, scratch)->status, ReplyStatus::kNeedsState);
  const auto resync = server->resync(1, ReplyStatus::kNeedsState);
  ASSERT_TRUE(resync.has_value());
  request.resync = &*resync;
  const Uplink<double>* const reply = client.handle(request, scratch);
  ASSERT_EQ(reply->status, ReplyStatus::kReply);
  ClientRuntime<double> twin(run_context, 1, *federation.oracles[1]);
  Scratch<double> twins;
  Request<double> again = request;
  again.resync = nullptr;
  ASSERT_EQ(twin.handle(again, twins)->status, ReplyStatus::kNeedsState);
  const Uplink<double>* const want = twin.handle(request, twins);
  EXPECT_TRUE(std::ranges::equal(reply->parts[0].values, want->parts[0].values));
}

}  // namespace
}  // namespace gradwire
