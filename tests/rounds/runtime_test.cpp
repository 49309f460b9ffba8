#include "rounds/runtime.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "fl_client/stoppable_oracle.h"
#include "tests/algorithms/every_method.h"
#include "tests/algorithms/federation.h"

namespace gradwire {
namespace {

// Counts the gradients that are asked for.
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

Envelope<double> request_of(const Downlink<double>& body, std::uint64_t ticket) {
  Envelope<double> request;
  request.ticket = ticket;
  request.body = &body;
  return request;
}

TEST(ClientRuntime, ATicketThatIsAskedTwiceGetsTheSameAnswerAndIsComputedOnce) {
  const testing::Federation<double> federation(3, 9);
  AlgorithmSpec spec = testing::spec_of("ef21_sgd", "topk:k=2");
  spec.batch = 1;  // no memory of gradients helps
  const auto setup = federation.setup(spec);
  Counting oracle(*federation.oracles[1]);
  ClientRuntime<double> client(setup, 1, oracle);
  const auto server = make_server<double>(setup);
  const Downlink<double> body = server->broadcast();
  const Envelope<double> request = request_of(body, 1);
  Scratch<double> scratch;
  const Uplink<double>* first = client.handle(request, scratch);
  ASSERT_NE(first, nullptr);
  ASSERT_EQ(first->answer, Answer::kReply);
  const int calls = oracle.calls;
  EXPECT_GT(calls, 0);
  const double grad_calls = first->grad_calls, loss = first->loss;
  const Uplink<double>* again = client.handle(request, scratch);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(oracle.calls, calls);
  EXPECT_EQ(again->grad_calls, grad_calls);
  EXPECT_EQ(again->loss, loss);
  EXPECT_EQ(again->ticket, 1u);
}

TEST(ClientRuntime, AComputationThatWasStoppedLeavesNothingBehind) {
  const testing::Federation<double> federation(3, 9);
  const auto setup = federation.setup(testing::spec_of("ringmaster", "identity", {}, "0.1"));
  Counting oracle(*federation.oracles[1]), untouched(*federation.oracles[1]);
  ClientRuntime<double> client(setup, 1, oracle), twin(setup, 1, untouched);
  const auto server = make_server<double>(setup);
  const Downlink<double> body = server->broadcast();
  Scratch<double> scratch, twins;
  std::uint64_t ticket = 0;
  for (const Request kind : {Request::kRound, Request::kEvaluate, Request::kRound}) {
    Envelope<double> request = request_of(body, ++ticket);
    request.request = kind;
    oracle.stops_next = true;
    if (ticket < 3) {  // the third is remembered
      EXPECT_THROW(client.handle(request, scratch), OracleStopped);
    }
    for (int again = 0; again < 2; ++again) {
      const Uplink<double>* got = client.handle(request, scratch);
      const Uplink<double>* want = twin.handle(request, twins);
      ASSERT_NE(got, nullptr);
      EXPECT_EQ(got->loss, want->loss);
      EXPECT_TRUE(std::ranges::equal(got->parts[0].values, want->parts[0].values)) << ticket;
      request.ticket = got->ticket;
    }
    oracle.stops_next = false;
  }
}

TEST(ClientRuntime, AMeasurementIsTheLossOfAnEvaluationWithoutItsGradient) {
  const testing::Federation<double> federation(3, 9);
  for (const bool is_stochastic : {false, true}) {
    AlgorithmSpec spec = testing::spec_of("gd", "identity", {}, "0.1");
    spec.batch = is_stochastic ? 2 : 0;
    const auto setup = federation.setup(spec);
    ClientRuntime<double> client(setup, 1, *federation.oracles[1]), twin(setup, 1, *federation.oracles[1]);
    const auto server = make_server<double>(setup);
    const Downlink<double> body = server->broadcast();
    Scratch<double> scratch, twins;
    Envelope<double> request = request_of(body, 1);
    request.request = Request::kEvaluate;
    const double loss = twin.handle(request, twins)->loss;
    request.request = Request::kMeasure;
    EXPECT_TRUE(client.accepts(request));
    for (int again = 0; again < 2; ++again) {
      const Uplink<double>* const got = client.handle(request, scratch);
      ASSERT_NE(got, nullptr);
      EXPECT_EQ(got->loss, loss);
      EXPECT_EQ(got->parts.size(), 0u);
      EXPECT_EQ(got->grad_calls, 0u);
      EXPECT_EQ(got->answer, Answer::kReply);
    }
  }
}

// With a quorum, or after messages that were lost, a client hears of the run in a later round.
TEST(ClientRuntime, AClientThatJoinsLateSendsTheWholeGradientThatInitNames) {
  const testing::Federation<double> federation(3, 9);
  for (const char* method : {"ef21", "ef21_plus", "ef21_hb", "ef21_sgd"}) {
    for (const char* init : {"gradient", "compressed"}) {
      const AlgorithmSpec spec = testing::spec_of(method, "topk:k=2", {{"init", init}});
      const auto setup = federation.setup(spec);
      ClientRuntime<double> client(setup, 1, *federation.oracles[1]);
      const auto server = make_server<double>(setup);
      Downlink<double> body = server->broadcast();  // views the server
      body.round = 4;
      Scratch<double> scratch;
      const Uplink<double>* reply = client.handle(request_of(body, 9), scratch);
      ASSERT_NE(reply, nullptr);
      ASSERT_EQ(reply->answer, Answer::kReply);
      EXPECT_EQ(reply->parts[0].shape == Shape::kDense, std::string(init) == "gradient")
          << method << " " << init;
    }
  }
}

}  // namespace
}  // namespace gradwire
