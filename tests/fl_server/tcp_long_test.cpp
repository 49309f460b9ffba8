// A test of a reply of more than 2^32 bytes over a socket.
#include <cstdlib>

#include "base/crc32c.h"
#include "proto/wire/reply_tail.h"
#include "tests/fl_server/tcp_fixture.h"
#include "tests/wire/codec_support.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kGiantDim = 600'000'000;  // doubles: 4.8 GB
constexpr std::size_t kSectionBytes = 4'000'000;

// Returns a dense reply to request id 1 that repeats one section.
Encoded giant_reply(const std::vector<double>& section) {
  Encoded message;
  message.header = dense_reply_header(kGiantDim).SerializeAsString();
  std::uint64_t length = 0;
  std::uint32_t crc = 0;
  for (; length < std::uint64_t{kGiantDim} * sizeof(double); length += kSectionBytes) {
    message.sections.push_back(std::as_bytes(std::span(section)));
    crc = crc32c(message.sections.back(), crc);
  }
  message.prefix = write_prefix(FrameType::kReply, std::as_bytes(std::span(message.header)), length, crc);
  return message;
}

// Sends the head of the message and this many of its sections.
void send_sections(FakeClient& client, const Encoded& message, std::size_t sections) {
  client.send(std::string(reinterpret_cast<const char*>(message.prefix.data()), kPrefixBytes) +
              message.header);
  for (std::size_t k = 0; k < sections; ++k) {
    const auto bytes = message.sections[k];
    client.send({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
}

TEST_F(TcpTransportTest, ResumesAReplyOfMoreThan4GiBAfterItsConnectionBreaks) {
  if (std::getenv("GRADWIRE_LONG_PAYLOADS") == nullptr)
    GTEST_SKIP() << "takes 5 GB; set GRADWIRE_LONG_PAYLOADS=1";
  static_assert(std::uint64_t{kGiantDim} * sizeof(double) % kSectionBytes == 0);
  open(patient(), kGiantDim);
  begin();
  Downlink<double> body;
  body.parts = {Payload<double>::nothing(kGiantDim)};
  Request<double> request;
  request.request_id = 1;
  request.body = &body;
  transport->send(0, request);
  std::vector<double> section(kSectionBytes / sizeof(double));
  std::iota(section.begin(), section.end(), 1.0);
  const Encoded message = giant_reply(section);

  constexpr std::uint64_t kFirst = 4'400'000'000;  // bytes before the connection breaks
  send_sections(clients[0], message, kFirst / kSectionBytes);
  while (next(0.05).kind != Kind::kTimeout) {
  }
  clients[0].hang_up();
  ASSERT_EQ(next().kind, Kind::kLeft);
  clients[0] = come_back("a");
  ASSERT_EQ(next().kind, Kind::kJoined);
  transport->send(0, request);
  const auto frame = clients[0].read_message();
  ASSERT_TRUE(frame);
  wire::Round round;
  ASSERT_TRUE(round.ParseFromString(frame->header));
  EXPECT_GT(round.have_bytes(), std::uint64_t{1} << 32);
  EXPECT_LE(round.have_bytes(), kFirst);

  const Encoded tail = reply_tail(message, round.have_bytes());
  send_sections(clients[0], tail, tail.sections.size());
  const Event<double> event = next(60);
  ASSERT_EQ(event.kind, Kind::kReply);
  const View<double> values = event.up.parts[0].values;
  ASSERT_EQ(values.size(), kGiantDim);
  for (std::size_t at = 0; at < values.size(); at += section.size())
    ASSERT_TRUE(std::equal(section.begin(), section.end(), values.begin() + static_cast<std::ptrdiff_t>(at)))
        << at;
}

}  // namespace
}  // namespace gradwire
