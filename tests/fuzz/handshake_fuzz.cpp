// Targets for chunks of replies, and for the control frames of the handshake.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>

#include "base/crc32c.h"
#include "fl_server/sessions/join.h"
#include "proto/security/challenge.h"
#include "proto/wire/chunk.h"
#include "proto/wire/codec.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/feature_messages.h"
#include "proto/wire/reply_tail.h"
#include "proto/wire/wire.pb.h"
#include "tests/fuzz/fuzz.h"

namespace gradwire::fuzz {
namespace {

// Checks a client's report about its data, as a server reads it.
void check_join(const wire::Join& join) {
  const Result<ClientInfo> info = read_join(join, {});
  if (!info) return check(info.error().message.starts_with("Join: "), "an error that does not say of what");
  check(std::is_sorted(info->labels.begin(), info->labels.end()), "labels in disorder");
  wire::Join again;
  write_join(*info, again);
  const Result<ClientInfo> twice = read_join(again, {});
  check(twice && twice->labels == info->labels && twice->alphabet == info->alphabet, "another client joins");
}

// Joins the sums of a client, as a server does it.
void check_sums_of(const wire::Join& join) {
  ClientSums sums{.columns = std::min<std::size_t>(join.columns(), 10'000),
                  .samples = join.sample_count(),
                  .features = {}};
  const Result<bool> taken = take_sums(join.sums(), sums);
  if (!taken) return check(taken.error().message.starts_with("Join: "), "an error that does not say of what");
  for (const Normalize kind : {Normalize::kStandard, Normalize::kMinMax}) {
    if (!gradwire::check_sums(sums, kind)) continue;
    const std::vector<ClientSums> clients = {sums, sums};
    const Normalization map = normalization_of(clients, kind);  // throws if a number is not finite
    check(map.shift.size() == sums.columns && map.scale.size() == sums.columns, "a map of other features");
    const auto saved = unpack_scaling(pack_scaling(map), kind);
    check(saved && *saved == map, "another map is saved");
  }
}

// Normalises samples by the map of a server, as a client does it.
void check_scaling(const wire::FeatureScaling& scaling) {
  Normalization map{Normalize::kStandard, {}, {}, 0};
  if (!take_scaling(scaling, map)) return;
  check(map.shift.size() == map.scale.size(), "a map that is not one");
  Dataset data{.columns = 2, .row_start = {0, 1}, .column = {1}, .value = {3}, .label = {1}};
  normalize(data, map);
  check(data.columns == std::max<std::size_t>(2, map.shift.size()), "features were lost");
}

}  // namespace

// Reads chunks, one after the other: request id u8, place u16, bytes u16, length of the whole u16, checksum
// byte u8.
bool run_chunks(Input input) {
  Cursor cursor(input);
  Assembly assembly;
  std::map<std::uint64_t, std::uint64_t> came;  // number of bytes by place
  constexpr std::uint64_t kMost = 50'000;
  const std::vector<std::byte> source(1 << 16, std::byte{5});
  while (!cursor.at_end()) {
    ChunkHeader head;
    head.request_id = cursor.u8();
    head.at = cursor.u16();
    const std::uint64_t bytes = cursor.u16();
    head.total = cursor.u16();
    const bool damaged = cursor.u8() % 8 == 7;
    const Input content = Input(source).first(bytes);
    const Encoded message = encode_chunk(head, content, crc32c(content) + (damaged ? 1 : 0));
    const auto prefix = read_prefix(message.prefix, kMost);
    if (!prefix) continue;
    const auto read = read_chunk(std::as_bytes(std::span(message.header)));
    check(read && read->at == head.at && read->total == head.total, "another chunk was read");
    const std::uint64_t before = assembly.request_id();
    const auto places = assembly.prepare(*read, *prefix, kMost);
    if (!places) continue;
    check(head.at + bytes <= head.total && head.total <= kMost, "a chunk outside its payload");
    if (assembly.request_id() != before) came.clear();
    std::memcpy(places->front().data(), content.data(), content.size());
    if (!assembly.finish()) continue;
    check(!damaged, "a damaged chunk counts");
    came[head.at] = bytes;
  }
  std::uint64_t sum = 0, end = 0;
  for (const auto& [at, bytes] : came) {
    check(at >= end, "chunks overlap");
    sum += bytes;
    end = at + bytes;
  }
  check(assembly.came() == sum, "the bytes are counted wrongly");
  if (sum == 0) return false;
  Bytes whole(assembly.total());
  const std::span<std::byte> target(whole);
  std::uint64_t rest = 0;
  for (const auto gap : assembly.spread(std::span(&target, 1))) rest += gap.size();
  check(rest + sum == whole.size(), "the gaps are not what is missing");
  // Checks the reply that a client sends after these chunks.
  Encoded reply;
  reply.sections = {Input(source).first(whole.size() / 2),
                    Input(source).first(whole.size() - whole.size() / 2)};
  std::vector<ChunkRange> ranges;
  for (const auto& [at, bytes] : came) ranges.push_back({at, bytes});
  const Encoded last = reply_without(reply, ranges);
  std::uint64_t sent = 0;
  for (const auto section : last.sections) sent += section.size();
  check(sent == rest, "the last message is not what is missing");
  return true;
}
std::vector<Bytes> chunks_seeds() {
  Bytes seed;
  const auto chunk = [&](unsigned request_id, std::size_t at, std::size_t bytes) {
    put_u8(seed, request_id);
    put_u16(seed, at);
    put_u16(seed, bytes);
    put_u16(seed, 40'000);
    put_u8(seed, 0);
  };
  chunk(7, 20'000, 5'000);
  chunk(7, 0, 20'000);
  chunk(7, 25'000, 15'000);
  chunk(8, 4'096, 4'096);
  return {seed};
}

bool run_handshake(Input input) {
  Cursor cursor(input);
  const std::uint8_t choice = cursor.u8();
  const Input header = cursor.rest();
  if (const auto chunked = chunked_header(header)) {
    check(chunked->header.size() < header.size(), "a field of no bytes");
    check(!chunked_header(chunked->header.first(0)), "a field in nothing");
  }
  bool taken = read_chunk(header).has_value();
  // Reads the rest of a reply, like a server that has its front.
  constexpr std::size_t kFromByte = 9;  // size of the last field, which says where the rest begins
  const Input of_whole = header.first(header.size() - std::min(header.size(), kFromByte));
  if (const auto from = tail_start(header, of_whole); from && *from <= header.size()) {
    Bytes whole(header.begin(), header.end());
    const std::array<std::span<std::byte>, 2> targets{std::span(whole).first(whole.size() / 3),
                                                      std::span(whole).subspan(whole.size() / 3)};
    std::uint64_t left = 0;
    for (const auto target : rest_of(targets, *from)) left += target.size();
    check(left + *from == whole.size(), "another rest is missing");
    taken = true;
  }
  std::deque<std::unique_ptr<WireMessage>> messages;
  messages.push_back(std::make_unique<wire::Hello>());
  messages.push_back(std::make_unique<wire::Welcome>());
  messages.push_back(std::make_unique<wire::Join>());
  messages.push_back(std::make_unique<wire::Start>());
  messages.push_back(std::make_unique<wire::Relay>());
  messages.push_back(std::make_unique<wire::ErrorMessage>());
  messages.push_back(std::make_unique<wire::Received>());
  messages.push_back(std::make_unique<wire::Proof>());
  auto& message = *messages[choice % messages.size()];
  if (parse_control(header, message)) {
    check(message.ByteSizeLong() <= header.size() + kMaxHeaderBytes, "a message longer than its bytes");
    taken = true;
    if (const auto* const join = dynamic_cast<const wire::Join*>(&message)) {
      check_join(*join);
      if (join->has_sums()) check_sums_of(*join);
    }
    if (const auto* const welcome = dynamic_cast<const wire::Welcome*>(&message); welcome != nullptr)
      check_scaling(welcome->scaling());
  }
  const std::string line = one_line(text_of(header));
  check(line.size() <= 2000, "a line without end");
  for (const char c : line) check(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a control character");
  static const Credentials credentials = [] {
    Credentials made{"a", "realm", SigningKey::generate(), {}};
    made.token = Bytes32{};
    return made;
  }();
  taken = answer_challenge(header, credentials).has_value() || taken;
  if (const auto invitation = Invitation::parse(text_of(header))) {
    const auto again = Invitation::parse(invitation->text());
    check(again && again->name == invitation->name && again->secret == invitation->secret, "another token");
    taken = true;
  }
  return taken;
}
std::vector<Bytes> handshake_seeds() {
  std::vector<Bytes> seeds;
  const auto add = [&](unsigned choice, const WireMessage& message) {
    Bytes seed;
    put_u8(seed, choice);
    const Bytes bytes = bytes_of(message.SerializeAsString());
    seed.insert(seed.end(), bytes.begin(), bytes.end());
    seeds.push_back(std::move(seed));
  };
  wire::Hello hello;
  hello.set_protocol(kWireVersion);
  hello.set_client_name("a");
  hello.set_public_key(std::string(32, 'k'));
  add(0, hello);
  wire::Join join;
  join.set_columns(3);
  join.set_sample_count(9);
  join.add_labels(-1);
  join.set_alphabet("abc");
  add(2, join);
  wire::FeatureSums& sums = *join.mutable_sums();
  for (std::uint32_t feature : {0u, 2u}) {
    sums.add_feature(feature);
    sums.add_count(feature + 1);
    sums.add_first(-0.5);
    sums.add_second(0);
  }
  add(2, join);
  wire::Welcome welcome;
  welcome.set_client(1);
  welcome.set_asks_sums(false);
  for (const double number : {1.0, 2.0}) {
    welcome.mutable_scaling()->add_shift(number);
    welcome.mutable_scaling()->add_scale(number);
  }
  welcome.mutable_scaling()->set_sparse(1);
  add(1, welcome);
  wire::Challenge challenge;
  challenge.set_nonce(std::string(32, 'n'));
  challenge.set_realm("realm");
  add(0, challenge);
  wire::Piece chunk;
  chunk.set_request_id(7);
  chunk.set_at_byte(0);
  chunk.set_total(9000);
  add(6, chunk);
  Uplink<double> reply;
  const Vec<double> numbers(9, 0.5);
  reply.parts = {Payload<double>::dense(numbers)};
  CodecContext context;
  context.dim = 9;
  context.clients = 4;
  Codec<double> codec(context);
  Bytes rest;
  put_u8(rest, 0);
  const Bytes header = bytes_of(reply_tail(codec.encode(reply), 5).header);
  rest.insert(rest.end(), header.begin(), header.end());
  seeds.push_back(std::move(rest));
  Bytes token;
  put_u8(token, 0);
  const Bytes text = bytes_of(Invitation{"a", {}, to_base64(sha256({}))}.text());
  token.insert(token.end(), text.begin(), text.end());
  seeds.push_back(std::move(token));
  return seeds;
}

}  // namespace gradwire::fuzz
