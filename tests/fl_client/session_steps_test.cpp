// A client's session, step by step: bytes arrive and leave one by one.
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "config/experiment_file.h"
#include "config/settings.h"
#include "fl_client/client_session.h"
#include "fl_server/plan_of_joins.h"
#include "proto/wire/codec_context.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/scatter.h"
#include "proto/wire/wire.pb.h"
#include "rounds/runtime.h"
#include "tests/support/session_frames.h"

namespace gradwire {
namespace {

class SessionSteps : public ::testing::Test {
 protected:
  SessionSteps() {
    join();
    x_.assign(plan_.d, 2);
    body_.parts = {Payload<double>::dense(x_)};
  }

  // Passes the handshake on a new connection.
  void join() {
    session_.begin_connection([this](const Pace& pace) { heartbeat_ = pace.heartbeat; });
    wire::Welcome welcome;
    welcome.set_client(0);
    welcome.set_heartbeat_ms(1000);
    welcome.set_experiment(pack_experiment(plan_.experiment));
    take(control_frame(FrameType::kWelcome, welcome));
    take(start_frame(plan_, 1));
    std::vector<std::string> sent;
    send_outgoing(session_, sent);
    EXPECT_EQ(sent.size(), 2u) << "Hello and Join";
  }
  // Takes the head of a frame.
  void take(const std::string& head) {
    const auto bytes = std::as_bytes(std::span(head));
    const auto prefix = read_prefix(bytes.first<kPrefixBytes>(), session_.max_payload());
    ASSERT_TRUE(prefix);
    EXPECT_FALSE(session_.take_head(*prefix, bytes.subspan(kPrefixBytes)));
  }
  // Takes the head of a request. Returns the payload.
  std::string take_request(std::uint64_t request_id) {
    Request<double> request;
    request.request_id = request_id;
    request.body = &body_;
    const auto encoded_body = codec_.encode_body(body_);
    const Encoded message = codec_.encode(request, encoded_body.get(), nullptr);
    take(std::string(reinterpret_cast<const char*>(message.prefix.data()), kPrefixBytes) + message.header);
    std::string payload;
    for (const auto section : message.sections)
      payload.append(reinterpret_cast<const char*>(section.data()), section.size());
    return payload;
  }
  void arrive(std::string_view payload) {
    for (const char byte : payload) {
      ASSERT_FALSE(session_.wanted().empty());
      EXPECT_FALSE(session_.asked());
      std::memcpy(session_.wanted().data(), &byte, 1);
      EXPECT_FALSE(session_.arrived(1));
    }
    EXPECT_TRUE(session_.wanted().empty());
  }
  void compute() {
    EXPECT_FALSE(session_.begin_answer());
    session_.compute();
    EXPECT_FALSE(session_.finish_answer(true));
  }
  // Lets the answer leave, byte by byte. Returns the request id that it names.
  std::uint64_t answered() {
    std::string frame;
    while (!session_.outgoing().empty()) {
      frame += static_cast<char>(session_.outgoing()[0][0]);
      session_.left(1);
    }
    const auto bytes = std::as_bytes(std::span(frame));
    const auto prefix = read_prefix(bytes.first<kPrefixBytes>(), frame.size());
    EXPECT_TRUE(prefix);
    const auto places = slot_.prepare(*prefix, bytes.subspan(kPrefixBytes, prefix->header_len));
    EXPECT_TRUE(places && scatter(bytes.subspan(kPrefixBytes + prefix->header_len), *places));
    const auto uplink = slot_.finish(0);
    EXPECT_TRUE(uplink);
    return uplink->request_id;
  }

  const RunPlan plan_ =
      plan_of_start(parse_experiment("[problem]\nkind = \"quadratic\"\ndim = 6\n[clients]\ncount = 1\n"
                                     "[algorithm]\nname = \"gd\"\nstep_size = 0.1\n",
                                     "t.toml")
                        .experiment,
                    {});
  const CodecContext context_ = codec_context(*make_run_context<double>(plan_, Role::kServer), {});
  Codec<double> codec_{context_};
  UplinkSlot<double> slot_{context_};
  Vec<double> x_;
  Downlink<double> body_;
  std::chrono::milliseconds heartbeat_{0};
  std::vector<std::string> lines_;
  ClientSession session_{{"name", 1, {}, [this](const LogLine& line) { lines_.push_back(line.text); }},
                         nullptr};
};

TEST_F(SessionSteps, AnswersARequestOnceItsLastByteIsThere) {
  EXPECT_EQ(heartbeat_.count(), 1000);
  EXPECT_FALSE(session_.asked());
  const std::string payload = take_request(1);
  EXPECT_EQ(payload.size(), 6 * sizeof(double));
  arrive(payload);
  EXPECT_TRUE(session_.asked());
  EXPECT_FALSE(session_.answered());
  compute();
  EXPECT_EQ(answered(), 1u);
  EXPECT_TRUE(session_.answered());
}

TEST_F(SessionSteps, AnswersNoRequestWhileAnotherOneTakesItsPlace) {
  arrive(take_request(1));
  const std::string payload = take_request(2);
  EXPECT_FALSE(session_.asked()) << "the bytes of the second request replace those of the first";
  arrive(payload);
  EXPECT_TRUE(session_.asked());
  compute();
  EXPECT_EQ(answered(), 2u);
}

TEST_F(SessionSteps, TakesARequestWhileAnAnswerLeaves) {
  arrive(take_request(1));
  compute();
  const std::string payload = take_request(2);
  const std::byte first = session_.outgoing()[0][0];
  EXPECT_EQ(first, std::byte{'G'});
  arrive(payload);
  EXPECT_FALSE(session_.asked()) << "the first answer is still there";
  EXPECT_EQ(answered(), 1u);
  EXPECT_TRUE(session_.asked());
  compute();
  EXPECT_EQ(answered(), 2u);
}

TEST_F(SessionSteps, ForgetsWhatTheConnectionDidNotTake) {
  arrive(take_request(1));
  compute();
  (void)session_.outgoing();
  session_.left(3);
  (void)take_request(2);
  std::memset(session_.wanted().data(), 0, 1);
  EXPECT_FALSE(session_.arrived(1));
  session_.end_connection();
  EXPECT_TRUE(session_.wanted().empty());
  EXPECT_TRUE(session_.outgoing().empty());
  join();
  EXPECT_FALSE(session_.asked());
  arrive(take_request(2));
  compute();
  EXPECT_EQ(answered(), 2u);
}

TEST_F(SessionSteps, LogsEverMoreLateAnswersRarely) {
  lines_.clear();
  wire::Received late;
  late.set_request_id(1);
  late.set_receipt(wire::RECEIPT_LATE);
  for (int k = 0; k < 10; ++k) take(control_frame(FrameType::kReceived, late));
  EXPECT_EQ(lines_,
            (std::vector<std::string>{
                "1 answer came too late and was not used", "2 answers came too late and were not used",
                "4 answers came too late and were not used", "8 answers came too late and were not used"}));
}

// A relay keeps its connections alive while its own server is slow.
TEST_F(SessionSteps, WaitsForAWelcomeThroughHeartbeats) {
  session_.begin_connection({});
  take(heartbeat_frame());
  EXPECT_FALSE(session_.welcome());
}

}  // namespace
}  // namespace gradwire
