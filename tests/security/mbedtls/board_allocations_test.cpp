// The TLS of a board's client takes no memory for a message once the first ones have passed.
#include <gtest/gtest.h>
#include <vector>

#include "proto/security/certificates.h"
#include "proto/security/tls.h"
#include "tests/support/count_allocations.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

TEST(BoardTls, AllocatesNothingForAMessageAfterTheFirstOnes) {
  const TemporaryFolder folder;
  const auto place = folder.path();
  make_authority(place);
  make_server_certificate(place, place, {"127.0.0.1"}, std::chrono::hours(1));
  TlsServer server(place / "server.pem", place / "server.key", TlsVersion::k12);
  TlsClient client(TrustedServer{{}, fingerprint_of(place / "ca.pem")});
  const auto here = client.connect("127.0.0.1"), there = server.accept();
  const auto taken_from = [](StreamFilter& filter) {
    const std::vector<std::byte> bytes(filter.outgoing().begin(), filter.outgoing().end());
    filter.sent(bytes.size());
    return bytes;
  };
  while (!here->ready() || !there->ready()) {
    ASSERT_TRUE(there->feed(taken_from(*here)));
    ASSERT_TRUE(here->feed(taken_from(*there)));
  }
  const std::vector<std::byte> model(20'000), reply(900);
  std::vector<std::byte> place_of_model(model.size());
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(there->write(model));
    const std::vector<std::byte> arriving = taken_from(*there);
    allocations::reset();
    ASSERT_TRUE(here->feed(arriving));
    const auto got = here->read(place_of_model);
    ASSERT_TRUE(got);
    ASSERT_EQ(*got, model.size());
    ASSERT_TRUE(here->write(reply));
    const std::size_t sent = here->outgoing().size();
    if (round >= 3) {
      EXPECT_EQ(allocations::count, 0u) << round;
    }
    ASSERT_GT(sent, reply.size());
    ASSERT_TRUE(there->feed(taken_from(*here)));
    ASSERT_EQ(*there->read(place_of_model), reply.size());
  }
}

}  // namespace
}  // namespace gradwire
