// The messages of proto/lean have the accessors of those that protoc makes, and write the same bytes.
#include "tests/support/lean_messages.h"

#include <algorithm>
#include <climits>
#include <fstream>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

#include "proto/lean/message.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

TEST(LeanMessages, AreComparedForEveryMessageOfTheProtoFiles) {
  std::size_t messages = 0;
  for (const char* const file : {"/proto/wire/wire.proto", "/storage/state.proto"}) {
    std::ifstream lines(std::string(GRADWIRE_SOURCE_DIR) + file);
    for (std::string line; std::getline(lines, line);) messages += line.starts_with("message ") ? 1 : 0;
  }
  EXPECT_EQ(messages, kMessageTypes.size());
}

// Expects the same bytes from the same calls.
template <class Wire, class Lean>
void expect_same_bytes(auto&& set) {
  Wire wire;
  Lean lean;
  set(wire);
  set(lean);
  EXPECT_EQ(lean.SerializeAsString(), wire.SerializeAsString());
  std::string appended = "before";
  EXPECT_TRUE(lean.AppendToString(&appended));
  EXPECT_EQ(appended, "before" + wire.SerializeAsString());
  EXPECT_TRUE(lean.SerializeToString(&appended));
  EXPECT_EQ(appended, wire.SerializeAsString());
}

void set_scaling(auto& m) { m.add_shift(-0.5), m.add_scale(2), m.set_sparse(7), m.set_more(true); }
void set_sums(auto& m) {
  m.add_feature(3), m.add_count(4), m.add_first(0.25), m.add_second(-1), m.set_more(false);
}
void set_part(auto& m) {
  m.set_shape({}), m.set_packing({}), m.set_seeded(true), m.set_dim(1), m.set_count(2), m.set_first(3);
  m.set_index_zstd_bytes(4), m.set_value_zstd_bytes(5), m.set_unit(0.1), m.set_levels(6), m.set_rows(7);
  m.set_continued(true);
}
void set_body(auto& m) {
  m.set_round(1), m.set_flags(2);
  set_part(*m.add_parts());
  m.add_parts()->set_dim(9);
}

TEST(LeanMessages, WriteWhatTheAccessorsOfProtobufWriteInAHandshake) {
  expect_same_bytes<wire::Experiment, lean_wire::Experiment>([](auto& m) {
    auto& setting = *m.add_settings();
    setting.set_path("a.b"), setting.set_text(std::string(300, 't'));
    *m.add_settings()->mutable_text() = "text";
  });
  expect_same_bytes<wire::Hello, lean_wire::Hello>([](auto& m) {
    const std::string name = "name";
    m.set_protocol(1), m.set_client_name(name), m.set_part_index(2), m.set_part_count(3);
    m.set_build("build"), m.set_pid(4), m.set_kernels(std::string("avx2")), m.set_process(5);
    m.set_connection(6), m.set_public_key("key", 2), m.add_abilities("zstd"), m.add_abilities(name);
    m.set_abilities(1, "fp32");
  });
  expect_same_bytes<wire::Challenge, lean_wire::Challenge>(
      [](auto& m) { m.set_nonce("\0n", 2), m.set_realm(""); });
  expect_same_bytes<wire::Proof, lean_wire::Proof>(
      [](auto& m) { m.set_signature("s"), m.set_token_mac("t"); });
  expect_same_bytes<wire::Welcome, lean_wire::Welcome>([](auto& m) {
    m.set_client(1), m.set_experiment("e"), m.set_heartbeat_ms(2), m.set_max_payload(3), m.set_pieces(true);
    m.set_asks_sums(false), set_scaling(*m.mutable_scaling());
  });
  expect_same_bytes<wire::Join, lean_wire::Join>([](auto& m) {
    m.set_columns(1), m.set_sample_count(2), m.add_labels(-1), m.add_labels(1), m.set_smoothness(3);
    m.set_convexity(4), m.set_test_count(5), m.set_alphabet("abc"), m.set_sample_smoothness(6);
    m.set_sample_smoothness_max(7), m.set_data_hash(8), set_sums(*m.mutable_sums()), m.set_table_hash(9);
  });
  expect_same_bytes<wire::Start, lean_wire::Start>([](auto& m) {
    const std::vector<double> labels{1, 2, 3};
    m.set_dim(1), m.set_columns(2), m.mutable_labels()->Assign(labels.begin(), labels.end());
    m.set_clients(3), m.set_experiment("e"), m.set_first_request_id(4), m.set_run(5), m.set_alphabet("a");
  });
  expect_same_bytes<wire::Relay, lean_wire::Relay>([](auto& m) {
    m.set_protocol(1), m.set_heartbeat_ms(2), m.set_max_payload(3), m.set_over(true), m.set_adds(true);
    m.set_asked(4), m.set_pieces(true), m.set_name("n"), m.set_public_key("k");
  });
  expect_same_bytes<wire::ErrorMessage, lean_wire::ErrorMessage>(
      [](auto& m) { m.set_message("m"), m.set_fatal(true), m.set_retry_after_ms(1); });
}

TEST(LeanMessages, WriteWhatTheAccessorsOfProtobufWriteInARound) {
  expect_same_bytes<wire::Part, lean_wire::Part>([](auto& m) { set_part(m); });
  expect_same_bytes<wire::Round, lean_wire::Round>([](auto& m) {
    m.set_request({}), m.set_request_id(1), m.set_committed(2), set_body(*m.mutable_body());
    set_body(*m.mutable_resync()), m.set_same_body(true), m.set_have_bytes(3);
  });
  expect_same_bytes<wire::Reply, lean_wire::Reply>([](auto& m) {
    m.set_request_id(1), m.set_round(2), m.set_client(3), m.set_answer({}), m.set_loss(4);
    m.set_grad_calls(5), m.set_correct(6), m.set_tested(7), set_part(*m.add_parts()), m.set_from_byte(8);
    m.add_covers(1), m.add_covers(2), m.set_covers(1, 3), m.set_in_pieces(9);
  });
  expect_same_bytes<wire::Piece, lean_wire::Piece>(
      [](auto& m) { m.set_request_id(1), m.set_at_byte(2), m.set_total(3); });
  expect_same_bytes<wire::Received, lean_wire::Received>(
      [](auto& m) { m.set_request_id(1), m.set_receipt({}); });
  expect_same_bytes<state::Run, lean_state::Run>([](auto& m) {
    auto& client = *m.add_clients();
    client.set_name("n"), client.set_by_part(true), client.set_build("b"), client.set_kernels("k");
    client.set_pid(1), client.set_join("j"), client.set_number(0xFFFFFFFF);
    m.set_asked("a"), m.set_experiment("e"), m.set_start("s"), m.set_scaling("c");
  });
}

// Expects that both classes have the same values of the same names.
template <class Wire, class Lean>
void expect_same_enum(std::vector<std::pair<Wire, Lean>> values) {
  for (const auto& [wire, lean] : values) EXPECT_EQ(static_cast<int>(wire), static_cast<int>(lean));
}

TEST(LeanMessages, HaveTheNumbersOfFieldsAndEnums) {
  EXPECT_EQ(int{lean_wire::Reply::kInPiecesFieldNumber}, int{wire::Reply::kInPiecesFieldNumber});
  EXPECT_EQ(int{lean_wire::Round::kBodyFieldNumber}, int{wire::Round::kBodyFieldNumber});
  expect_same_enum<wire::Packing, lean_wire::Packing>(
      {{wire::PACKING_PLAIN, lean_wire::PACKING_PLAIN},
       {wire::PACKING_DITHERED_AS_PLAIN, lean_wire::PACKING_DITHERED_AS_PLAIN}});
  expect_same_enum<wire::Ack, lean_wire::Ack>({{wire::RECEIPT_REFUSED, lean_wire::RECEIPT_REFUSED}});
}

TEST(LeanMessages, SayWhatIsPresent) {
  lean_wire::Round round;
  EXPECT_FALSE(round.has_request() || round.has_body() || round.body().has_round());
  EXPECT_EQ(round.body().parts_size(), 0);
  EXPECT_TRUE(round.SerializeAsString().empty());
  round.set_request(lean_wire::REQUEST_ROUND);
  round.mutable_body();
  EXPECT_TRUE(round.has_request() && round.has_body() && !round.has_resync());
  EXPECT_EQ(round.SerializeAsString(), std::string("\x08\0\x22\0", 4));
  round.mutable_body()->set_round(3);
  round.clear_request();
  round.clear_body();
  EXPECT_FALSE(round.has_request() || round.has_body() || round.body().has_round());
  lean_wire::Hello hello;
  hello.set_client_name("a");
  hello.add_abilities("b");
  hello.clear_client_name();
  hello.clear_abilities();
  EXPECT_FALSE(hello.has_client_name());
  EXPECT_EQ(hello.client_name(), "");
  EXPECT_TRUE(hello.SerializeAsString().empty());
}

TEST(LeanMessages, AreCopiedAndMovedAsValues) {
  lean_wire::Reply reply;
  reply.set_round(2);
  for (std::uint32_t dim = 0; dim < 5; ++dim) reply.add_parts()->set_dim(dim);
  const std::string bytes = reply.SerializeAsString();
  lean_wire::Reply copy = reply;
  reply.mutable_parts(0)->set_dim(7);
  EXPECT_EQ(copy.SerializeAsString(), bytes);
  lean_wire::Reply moved = std::move(copy);
  EXPECT_EQ(moved.SerializeAsString(), bytes);
  copy = {};
  EXPECT_TRUE(copy.SerializeAsString().empty());
  copy = moved;
  std::uint32_t dim = 0;
  for (const lean_wire::Part& part : copy.parts()) EXPECT_EQ(part.dim(), dim++);
  EXPECT_EQ(dim, 5u);
}

TEST(LeanMessages, KeepTheirMemoryWhenTheyAreUsedAgain) {
  lean_wire::Reply reply;
  reply.add_parts()->set_dim(1);
  reply.add_parts();
  for (std::uint32_t client = 0; client < 100; ++client) reply.add_covers(client);
  lean_wire::Hello hello;
  hello.set_client_name(std::string(100, 'a'));
  hello.add_abilities(std::string(100, 'b'));
  const auto memory = [&]() -> std::vector<const void*> {
    return {&reply.parts(0), &reply.parts(1), reply.covers().data(), hello.client_name().data(),
            hello.abilities(0).data()};
  };
  const auto before = memory();
  const std::string reply_bytes = reply.SerializeAsString(), hello_bytes = hello.SerializeAsString();
  reply.Clear();
  EXPECT_FALSE(reply.add_parts()->has_dim());
  EXPECT_TRUE(reply.ParseFromString(reply_bytes) && hello.ParseFromString(hello_bytes));
  EXPECT_EQ(memory(), before);
  EXPECT_EQ(reply.SerializeAsString(), reply_bytes);
}

TEST(LeanMessages, HaveDefaultValuesAfterClear) {
  lean_wire::Part part;
  set_part(part);
  part.set_shape(lean_wire::SHAPE_DENSE);
  part.Clear();
  EXPECT_EQ(part.shape(), lean_wire::SHAPE_NOTHING);
  EXPECT_FALSE(part.seeded());
  EXPECT_EQ(part.dim(), 0u);
  EXPECT_EQ(part.index_zstd_bytes(), 0u);
  EXPECT_EQ(part.unit(), 0);
  lean_state::Client client;
  client.set_number(1);
  client.set_name("a");
  client.Clear();
  EXPECT_EQ(client.number(), 0u);
  EXPECT_EQ(client.name(), "");
}

TEST(LeanMessages, RefuseBytesThatAnIntCannotCount) {
  lean_wire::Hello hello;
  const std::string_view bytes = "\xa2\x01\xef\xff\xff\xff\x07";  // field 20 has nearly 2 GB
  EXPECT_FALSE(hello.ParseFromArray(bytes.data(), -1));
  EXPECT_FALSE(hello.ParseFromString({bytes.data(), std::size_t{INT_MAX} + 1}));
}

TEST(LeanMessages, ReadAndWriteAMillionRandomMessagesLikeProtobuf) {
  for (std::size_t type = 0; type < kMessageTypes.size(); ++type) {
    Random random(1, "lean", type);
    MessagePair pair = kMessageTypes[type]();
    const auto filled = kMessageTypes[type]().lean;
    for (int k = 0; k < scaled(50'000); ++k) {
      filled->Clear();
      MessageFiller(random).fill(*filled);
      const std::string bytes = filled->SerializeAsString();
      ASSERT_EQ(pair.difference(bytes), "") << "type " << type << ", message " << k;
      ASSERT_TRUE(pair.accepted && pair.written == bytes) << "type " << type << ", message " << k;
    }
  }
}

}  // namespace
}  // namespace gradwire
