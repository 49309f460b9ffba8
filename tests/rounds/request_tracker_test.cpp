// Tests the tracker against a transport with scripted events.
#include "rounds/request_tracker.h"

#include <deque>
#include <gtest/gtest.h>
#include <tuple>

#include "tests/algorithms/federation.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_of;

struct Script final : Transport<double> {
  std::uint64_t send(ClientId client, const Request<double>& request) override {
    sent.emplace_back(client, request.request_id, request.resync != nullptr);
    resync = request.resync;
    return 100;
  }
  void acknowledge(ClientId client, std::uint64_t request_id, Ack ack) override {
    acknowledged.emplace_back(client, request_id, ack);
  }
  void discard(const Event<double>&) override { ++discarded; }
  void report_misbehaviour(const Event<double>&) override { ++reported; }
  const Event<double>& next(double deadline) override {
    if (resync != nullptr) resync_parts = resync->parts.size();  // the resync lives until this call returns
    resync = nullptr;
    event = {};
    clock += seconds_of_an_event;
    if (events.empty()) {
      clock = deadline;
    } else {
      event = events.front();
      events.pop_front();
    }
    return event;
  }
  double now() const override { return clock; }

  std::deque<Event<double>> events;
  std::vector<std::tuple<ClientId, std::uint64_t, bool>> sent;
  std::vector<std::tuple<ClientId, std::uint64_t, Ack>> acknowledged;
  int discarded = 0, reported = 0;
  const Downlink<double>* resync = nullptr;
  std::size_t resync_parts = 99;  // 99 if there was no resync
  Event<double> event;
  double clock = 0, seconds_of_an_event = 0;
};

std::shared_ptr<const RunContext<double>> with_mirrors(const Federation<double>& federation,
                                                       const char* algorithm) {
  auto run_context = federation.run_context(spec_of(algorithm, "identity", {}, "0.1"));
  run_context->keep_client_state_replicas = true;
  return run_context;
}

class RequestTrackerTest : public ::testing::Test {
 protected:
  using Kind = RequestTracker<double>::Kind;

  explicit RequestTrackerTest(const char* algorithm = "gd")
      : run_context_(with_mirrors(federation_, algorithm)) {
    body_.round = 4;
    body_.parts = {Payload<double>::dense(View<double>(x_))};
  }

  void ask_all() {
    const std::uint64_t request_id = tracker_.new_request_id();
    for (ClientId c = 0; c < 3; ++c) tracker_.ask(c, RequestKind::kRound, request_id, body_);
  }
  Event<double> answer(ClientId client, std::uint64_t request_id,
                       ReplyStatus kind = ReplyStatus::kReply) const {
    Event<double> event;
    event.kind = Event<double>::Kind::kReply;
    event.bytes = 50;
    event.up.client = client;
    event.up.request_id = request_id;
    event.up.round = 4;
    event.up.status = kind;
    if (kind == ReplyStatus::kReply) event.up.parts = body_.parts;
    return event;
  }
  static Event<double> of(Event<double>::Kind kind, ClientId client) {
    Event<double> event;
    event.kind = kind;
    event.up.client = client;
    return event;
  }
  static Event<double> joined(ClientId client) { return of(Event<double>::Kind::kJoined, client); }
  // Returns the kinds of arrivals that the driver gets for these events, up to the deadline.
  std::vector<Kind> arrivals(std::vector<Event<double>> events) {
    script_.events.assign(events.begin(), events.end());
    std::vector<Kind> kinds;
    for (;;) {
      const auto arrival = tracker_.next(script_.clock + 1);
      if (arrival.kind == Kind::kDeadline) return kinds;
      kinds.push_back(arrival.kind);
    }
  }

  const Federation<double> federation_{3, 2};
  const std::shared_ptr<const gradwire::RunContext<double>> run_context_;
  const std::unique_ptr<ServerAlgorithm<double>> server_ = make_server<double>(run_context_);
  const Vec<double> x_ = Vec<double>(2);
  Downlink<double> body_;
  Script script_;
  RunProgress progress_{
      .request_id = 7, .committed = std::vector<std::uint64_t>(3), .round = 0, .totals = {}};
  std::vector<std::string> notes_;
  const Log on_note_ = [this](const LogLine& line) { notes_.push_back(line.text); };
  RequestTracker<double> tracker_{*server_, *run_context_, script_, progress_, on_note_};
};

class RequestTrackerOfMirrors : public RequestTrackerTest {
 protected:
  RequestTrackerOfMirrors() : RequestTrackerTest("ef21") {}
};

TEST_F(RequestTrackerTest, CountsBytesOfFirstSendsAndUsedAnswers) {
  ask_all();
  tracker_.repeat(1, body_);
  EXPECT_EQ(progress_.totals.bytes_down, 300u);
  EXPECT_EQ(arrivals({answer(0, 8), answer(0, 8), answer(2, 8)}), std::vector(2, Kind::kReply));
  EXPECT_EQ(progress_.totals.bytes_up, 100u);
  EXPECT_TRUE(!tracker_.owes(0) && tracker_.owes(1) && !tracker_.owes(2));
}

TEST_F(RequestTrackerTest, AcknowledgesRepeatedRepliesAsAccepted) {
  ask_all();
  arrivals({answer(0, 8), answer(0, 8)});
  EXPECT_EQ(script_.acknowledged,
            (decltype(script_.acknowledged){{0, 8, Ack::kAccepted}, {0, 8, Ack::kAccepted}}));
}

TEST_F(RequestTrackerTest, CallsAnswersToOlderOrUnknownRequestIdsLate) {
  ask_all();
  ask_all();
  EXPECT_TRUE(arrivals({answer(1, 8), answer(1, 10), answer(1, 0)}).empty());
  EXPECT_EQ(script_.acknowledged,
            (decltype(script_.acknowledged){{1, 8, Ack::kLate}, {1, 10, Ack::kLate}, {1, 0, Ack::kLate}}));
  EXPECT_TRUE(tracker_.owes(1));
}

TEST_F(RequestTrackerTest, CallsAllAnswersLateOnceTheRequestIsClosed) {
  ask_all();
  arrivals({answer(0, 8)});
  tracker_.close();
  EXPECT_TRUE(arrivals({answer(0, 8), answer(1, 8), joined(2)}).empty());
  EXPECT_EQ(script_.acknowledged,
            (decltype(script_.acknowledged){{0, 8, Ack::kAccepted}, {0, 8, Ack::kLate}, {1, 8, Ack::kLate}}));
  EXPECT_FALSE(tracker_.owes(1) || tracker_.owes(2));
}

TEST_F(RequestTrackerTest, UsesOneRequestIdPerClientIfTheDriverAsks) {
  for (ClientId c = 0; c < 3; ++c) tracker_.ask(c, RequestKind::kRound, tracker_.new_request_id(), body_);
  EXPECT_EQ(arrivals({answer(2, 10), answer(0, 8), answer(1, 8)}), std::vector(2, Kind::kReply));
  EXPECT_EQ(std::get<2>(script_.acknowledged.back()), Ack::kLate) << "client 1 was asked request id 9";
  tracker_.ask(0, RequestKind::kRound, tracker_.new_request_id(), body_);
  EXPECT_EQ(arrivals({answer(0, 8), answer(0, 11), answer(1, 9)}), std::vector(2, Kind::kReply));
}

TEST_F(RequestTrackerTest, RefusesAnAnswerOfTheWrongShapeOrRoundAndTakesALaterGoodOne) {
  ask_all();
  Event<double> empty = answer(1, 8), old = answer(1, 8);
  empty.up.parts = {};
  old.up.round = 3;
  EXPECT_EQ(arrivals({empty, old, answer(1, 8)}), std::vector(1, Kind::kReply));
  EXPECT_EQ(script_.discarded, 2);
  EXPECT_EQ(script_.reported, 2);
  EXPECT_EQ(script_.acknowledged, (decltype(script_.acknowledged){
                                      {1, 8, Ack::kRefused}, {1, 8, Ack::kRefused}, {1, 8, Ack::kAccepted}}));
}

TEST_F(RequestTrackerTest, ReportsANonFiniteAnswerOnceAndTakesALaterGoodOne) {
  ask_all();
  const auto nan = answer(0, 8, ReplyStatus::kNotFinite);
  EXPECT_EQ(arrivals({nan, nan}), std::vector(1, Kind::kUnusable));
  EXPECT_TRUE(tracker_.has_no_usable_answer(0) && !tracker_.owes(0));
  EXPECT_EQ(arrivals({joined(0), answer(0, 8)}), (std::vector{Kind::kAgain, Kind::kReply}));
  EXPECT_FALSE(tracker_.has_no_usable_answer(0));
}

// A tracker with a norm limit of 2, and answers of norm 5.
class RequestTrackerWithALimit : public RequestTrackerTest {
 protected:
  std::optional<RequestTracker<double>> begin(NormAction action) {
    return std::optional<RequestTracker<double>>(std::in_place, *server_, *run_context_, script_, progress_,
                                                 on_note_, NormLimit{2, action});
  }
  Event<double> large(ClientId client) const {
    Event<double> event = answer(client, 8);
    event.up.parts = large_parts_;
    event.frame = frame_;
    return event;
  }
  const Vec<double> large_ = {3, 4};
  const Parts<double> large_parts_ = {Payload<double>::dense(View<double>(large_))};
  const std::span<const std::byte> piece_;
  const Frame frame_ = Frame(&piece_, 1);
};

TEST_F(RequestTrackerWithALimit, RejectsLargeAnswersOnceAndTakesALaterGoodOne) {
  auto tracker = begin(NormAction::kReject);
  tracker->ask(0, RequestKind::kRound, tracker->new_request_id(), body_);
  script_.events = {large(0), large(0), answer(0, 8)};
  EXPECT_EQ(tracker->next(1).kind, Kind::kUnusable);
  EXPECT_TRUE(tracker->has_no_usable_answer(0));
  EXPECT_EQ(script_.acknowledged.back(), std::tuple(0u, std::uint64_t{8}, Ack::kRefused));
  EXPECT_EQ(tracker->next(1).kind, Kind::kReply);
  EXPECT_EQ(script_.discarded, 2);
  EXPECT_EQ(script_.reported, 0) << "a correct client does not know the limit";
  EXPECT_EQ(progress_.totals.bytes_up, 50u);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find("the reply of client 0 has the norm 5, above server.norm_limit = 2; counting it"),
            std::string::npos)
      << notes_[0];
}

TEST_F(RequestTrackerWithALimit, ShowsAClippedAnswerUntilTheNextRequestWithoutAFrame) {
  auto tracker = begin(NormAction::kHalve);
  const std::uint64_t request_id = tracker->new_request_id();
  tracker->ask(0, RequestKind::kRound, request_id, body_);
  tracker->ask(1, RequestKind::kRound, request_id, body_);
  script_.events = {large(0), answer(1, 8)};
  const auto arrival = tracker->next(1);
  ASSERT_EQ(arrival.kind, Kind::kReply);
  const UplinkView<double> up = arrival.event.up;
  EXPECT_TRUE(arrival.event.frame.empty());
  EXPECT_EQ(tracker->next(1).kind, Kind::kReply);
  ASSERT_EQ(up.parts.size(), 1u);
  EXPECT_EQ(up.parts[0].values[0], 0.75);
  EXPECT_EQ(up.parts[0].values[1], 1.0);
  EXPECT_EQ(script_.acknowledged.front(), std::tuple(0u, std::uint64_t{8}, Ack::kAccepted));
}

TEST_F(RequestTrackerWithALimit, ChecksOnlyUpdates) {
  auto tracker = begin(NormAction::kReject);
  tracker->ask(0, RequestKind::kEvaluate, tracker->new_request_id(), body_);
  script_.events = {large(0)};
  EXPECT_EQ(tracker->next(1).kind, Kind::kReply);
}

TEST_F(RequestTrackerWithALimit, TakesNoSums) {
  auto tracker = begin(NormAction::kWarn);
  tracker->ask(0, RequestKind::kRound, tracker->new_request_id(), body_);
  tracker->ask(1, RequestKind::kRound, progress_.request_id, body_);
  Event<double> sum = answer(0, 8);
  const std::vector<ClientId> covers{0, 1};
  sum.covers = covers;
  script_.events = {sum};
  EXPECT_EQ(tracker->next(1).kind, Kind::kDeadline);
  EXPECT_EQ(std::get<2>(script_.acknowledged.back()), Ack::kRefused);
}

TEST_F(RequestTrackerTest, SurvivesUnknownClients) {
  ask_all();
  Event<double> sum = answer(0, 8);
  const std::vector<ClientId> covers{0, 70'000};
  sum.covers = covers;
  EXPECT_TRUE(arrivals({answer(3, 8), joined(4'000'000'000)}).empty());
  EXPECT_TRUE(script_.acknowledged.empty());
  EXPECT_TRUE(arrivals({sum}).empty());
  EXPECT_TRUE(tracker_.owes(0));
}

TEST_F(RequestTrackerTest, CallsUnrequestedAnswersLate) {
  tracker_.ask(0, RequestKind::kRound, tracker_.new_request_id(), body_);
  EXPECT_TRUE(arrivals({answer(1, 8), answer(1, 0), joined(1)}).empty());
  EXPECT_EQ(script_.acknowledged, (decltype(script_.acknowledged){{1, 8, Ack::kLate}, {1, 0, Ack::kLate}}));
}

TEST_F(RequestTrackerTest, AcknowledgesAnswersToEvaluationsOnlyIfTheyAreLate) {
  tracker_.ask(0, RequestKind::kEvaluate, tracker_.new_request_id(), body_);
  Event<double> empty = answer(0, 8), sum = answer(0, 8);
  empty.up.parts = {};
  const std::vector<ClientId> covers{0, 1};
  sum.covers = covers;
  EXPECT_EQ(arrivals({empty, answer(0, 8), answer(0, 8)}), std::vector(1, Kind::kReply));
  EXPECT_TRUE(script_.acknowledged.empty());
  EXPECT_EQ(script_.discarded, 1);
  EXPECT_TRUE(arrivals({answer(0, 7), sum}).empty());
  EXPECT_EQ(script_.acknowledged, (decltype(script_.acknowledged){
                                      {0, 7, Ack::kLate}, {0, 8, Ack::kRefused}, {1, 8, Ack::kRefused}}));
}

TEST_F(RequestTrackerTest, SkipsDuplicatesOfDiscardedAnswers) {
  ask_all();
  Event<double> repeated = answer(0, 8);
  repeated.up.parts = {};
  repeated.repeated = true;
  EXPECT_TRUE(arrivals({repeated}).empty());
  EXPECT_TRUE(script_.acknowledged.empty() && script_.discarded == 0 && notes_.empty());
}

TEST_F(RequestTrackerTest, LogsArrivalsDeparturesAndDiscardedAnswers) {
  ask_all();
  Event<double> empty = answer(1, 8);
  empty.up.parts = {};
  arrivals({of(Event<double>::Kind::kLeft, 2), joined(2), empty, answer(0, 8, ReplyStatus::kNotFinite)});
  EXPECT_EQ(notes_,
            (std::vector<std::string>{
                "client 2 left", "client 2 joined",
                "client 1 sent a message of the wrong shape or for another round; ignoring it",
                "round 0: the loss or gradient of client 0 is not a finite number; counting it as missing"}));
}

TEST_F(RequestTrackerTest, ReportsTheOperatorsStop) {
  EXPECT_EQ(arrivals({of(Event<double>::Kind::kStopped, 0)}), std::vector(1, Kind::kStopped));
}

TEST_F(RequestTrackerTest, ShutsAllClientsDownWithANewRequestId) {
  ask_all();
  script_.sent.clear();
  tracker_.shutdown();
  EXPECT_EQ(script_.sent, (decltype(script_.sent){{0, 9, false}, {1, 9, false}, {2, 9, false}}));
}

TEST_F(RequestTrackerTest, TakesASumForAllItsClientsOrForNone) {
  ask_all();
  const std::vector<ClientId> some{0, 2}, all{0, 1, 2};
  Event<double> sum_of_some = answer(0, 8), sum_of_all = answer(0, 8);
  sum_of_some.covers = some;
  sum_of_all.covers = all;
  EXPECT_EQ(arrivals({sum_of_some, sum_of_all}), std::vector(1, Kind::kReply));
  EXPECT_TRUE(!tracker_.owes(0) && tracker_.owes(1) && !tracker_.owes(2));
  EXPECT_EQ(script_.discarded, 1) << "the second covers clients that have answered";
  EXPECT_EQ(script_.acknowledged, (decltype(script_.acknowledged){{0, 8, Ack::kAccepted},
                                                                  {2, 8, Ack::kAccepted},
                                                                  {0, 8, Ack::kRefused},
                                                                  {1, 8, Ack::kRefused},
                                                                  {2, 8, Ack::kRefused}}));
  EXPECT_EQ(progress_.totals.bytes_up, 50u) << "a sum is one message";
}

TEST_F(RequestTrackerTest, RefusesASumWithAnUnaskedFirstClientSoThatTheOthersAreTakenSingly) {
  tracker_.ask(1, RequestKind::kRound, tracker_.new_request_id(), body_);
  Event<double> sum = answer(0, 8);
  const std::vector<ClientId> covers{0, 1};
  sum.covers = covers;
  EXPECT_TRUE(arrivals({sum}).empty());
  EXPECT_EQ(script_.acknowledged,
            (decltype(script_.acknowledged){{0, 8, Ack::kRefused}, {1, 8, Ack::kRefused}}));
  EXPECT_EQ(script_.discarded, 1);
  sum.up.request_id = 7;
  EXPECT_TRUE(arrivals({sum}).empty());
  EXPECT_EQ(std::get<2>(script_.acknowledged.back()), Ack::kLate);
}

TEST_F(RequestTrackerTest, NeverSendsAnOldRequestIdWithANewBody) {
  ask_all();
  body_.round = 5;
  EXPECT_THROW(tracker_.repeat(0, body_), std::logic_error);
}

TEST_F(RequestTrackerTest, EndsAtItsDeadlineWhileEventsNeverCease) {
  ask_all();
  script_.clock = 2;
  script_.events.assign(3, joined(0));
  EXPECT_EQ(tracker_.next(1).kind, Kind::kDeadline);
  EXPECT_EQ(script_.events.size(), 3u);
  // The same holds for events that the tracker handles itself.
  script_.clock = 0;
  script_.seconds_of_an_event = 0.4;
  script_.events.assign(100, of(Event<double>::Kind::kLeft, 0));
  EXPECT_EQ(tracker_.next(1).kind, Kind::kDeadline);
  EXPECT_EQ(script_.events.size(), 97u);
}

TEST_F(RequestTrackerOfMirrors, SendsStateOnceForEachRequest) {
  ask_all();
  script_.sent.clear();
  const auto cry = answer(1, 8, ReplyStatus::kNeedsState);
  script_.events = {cry};
  ASSERT_EQ(tracker_.next(1).kind, Kind::kAgain);
  tracker_.repeat(1, body_);
  EXPECT_TRUE(arrivals({cry}).empty()) << "it was given the state";
  EXPECT_EQ(script_.resync_parts, 0u) << "no reply was used: the client starts from nothing";
  tracker_.repeat(1, body_);  // the driver asks the missing clients again
  EXPECT_EQ(arrivals({cry}), std::vector(1, Kind::kAgain));
  EXPECT_EQ(script_.sent, (decltype(script_.sent){{1, 8, true}, {1, 8, false}}));
}

TEST(RequestTrackerWithoutMirrors, ExplainsWhatToDoIfTheStateIsLost) {
  const Federation<double> federation(1, 2);
  auto run_context = federation.run_context(spec_of("ef14", "identity", {}, "0.1"));
  const auto server = make_server<double>(run_context);
  Script script;
  RunProgress progress;
  progress.committed.resize(1);
  const Log silent;
  RequestTracker<double> tracker(*server, *run_context, script, progress, silent);
  const Vec<double> x(2);
  Downlink<double> body;
  body.parts = {Payload<double>::dense(View<double>(x))};
  tracker.ask(0, RequestKind::kRound, tracker.new_request_id(), body);
  Event<double> cry;
  cry.kind = Event<double>::Kind::kReply;
  cry.up.request_id = 1;
  cry.up.status = ReplyStatus::kNeedsState;
  script.events = {cry};
  ASSERT_EQ(tracker.next(1).kind, RequestTracker<double>::Kind::kAgain);
  try {
    tracker.repeat(0, body);
    FAIL() << "the state is lost";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("bring the client back with its --state"), std::string::npos);
  }
}

}  // namespace
}  // namespace gradwire
