// Targets for messages: frames, replies and requests. The checksums are made correct, because otherwise the
// fuzzer would only find wrong checksums.
#include <array>
#include <cstring>
#include <memory>

#include "base/crc32c.h"
#include "proto/wire/codec.h"
#include "proto/wire/control_frame.h"
#include "tests/fuzz/fuzz.h"

namespace gradwire::fuzz {
namespace {

constexpr std::uint32_t kWireDim = 78;   // = 12 * 13 / 2, for rankr
constexpr std::uint32_t kLongDim = 253;  // = 22 * 23 / 2; makes sections long enough for zstd
constexpr const char* kSpecs[] = {"identity",
                                  "randk:k=7",
                                  "randseqk:k=7",
                                  "topk:k=7",
                                  "permk",
                                  "natural",
                                  "terngrad",
                                  "qsgd:s=4",
                                  "sign",
                                  "natural_dithering:s=8",
                                  "rankr:r=1",
                                  "natural(topk:k=7)",
                                  "induced(topk:k=7,randk:k=7)",
                                  "bernoulli:p=0.5"};

std::vector<CodecContext> make_contexts(std::uint32_t dim) {
  std::vector<CodecContext> made;
  for (const char* spec : kSpecs) {
    CodecContext context;
    context.seed = 42;
    context.dim = dim;
    context.clients = 4;
    context.compressor = parse_compressor(spec, dim, 4);
    made.push_back(context);
  }
  return made;
}
constexpr std::uint8_t kLongChoice = 8 * std::size(kSpecs);  // the first choice with long sections

// Returns the context that the first byte of an input selects.
CodecContext context_of(std::uint8_t choice) {
  static const auto short_ones = make_contexts(kWireDim), long_ones = make_contexts(kLongDim);
  const auto& contexts = choice >= kLongChoice ? long_ones : short_ones;
  CodecContext context = contexts[choice % contexts.size()];
  if (choice / contexts.size() % 2 == 1) context.compressor_down = context.compressor;
  context.asynchronous = choice >= 2 * contexts.size();
  return context;
}

// Returns the input for a message: the choice u8, the length of the header u16, the header and the payload.
Bytes message_input(std::uint8_t choice, const Encoded& message) {
  Bytes input;
  put_u8(input, choice);
  put_sized(input, std::as_bytes(std::span(message.header)));
  for (const auto section : message.sections) input.insert(input.end(), section.begin(), section.end());
  return input;
}

// Gives the message of an input to a slot, like a connection. `finish` returns what the slot reads, or an
// error.
template <class Slot, class Prepare, class Finish>
auto receive_input(Slot&, Cursor& input, FrameType type, const CodecContext& context, std::size_t real_bytes,
                   Prepare prepare, Finish finish) -> decltype(finish()) {
  const Input header = input.bytes(input.u16());
  const Input payload = input.rest();
  const auto raw = write_prefix(type, header, payload.size(), crc32c(payload));
  const auto prefix = read_prefix(raw, max_payload_bytes(context, real_bytes), true);
  if (!prefix) return prefix.error();
  check(check_header(raw, header).has_value(), "a right checksum is refused");
  const auto targets = prepare(*prefix, header);
  if (!targets) return targets.error();
  std::size_t at = 0;
  for (const auto target : *targets) {
    check(at + target.size() <= payload.size(), "a slot wants more bytes than the payload has");
    std::memcpy(target.data(), payload.data() + at, target.size());
    at += target.size();
  }
  check(at == payload.size(), "a slot leaves bytes of the payload");
  return finish();
}

template <class Real>
bool same_payload(const Payload<Real>& a, const Payload<Real>& b) {
  const auto bits = [](const auto& x, const auto& y) {
    return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size_bytes()) == 0);
  };
  return a.shape == b.shape && a.dim == b.dim && a.first == b.first && a.rows == b.rows &&
         bits(a.indices, b.indices) && bits(a.values, b.values) &&
         (a.next == nullptr) == (b.next == nullptr) && (a.next == nullptr || same_payload(*a.next, *b.next));
}

template <class Real>
void check_payload(const Payload<Real>& p) {
  check(p.dim <= kLongDim, "a vector longer than the run's");
  check(p.values.size() <= kLongDim * (kLongDim + 1) / 2, "more values than a vector has");
  std::uint64_t next = 0;
  for (const std::uint32_t index : p.indices) {
    check(index >= next && index < p.dim, "an index out of order or range");
    next = std::uint64_t{index} + 1;
  }
  if (p.next != nullptr) check_payload(*p.next);
}

template <class Real>
bool run_reply_of(std::uint8_t choice, Cursor input) {
  const CodecContext context = context_of(choice);
  const bool is_sum = input.u8() % 2 == 1;
  UplinkSlot<Real> slot(context, !is_sum);  // frames of sums are not kept
  ClientId client = 0;
  const auto got = receive_input(
      slot, input, FrameType::kReply, context, sizeof(Real),
      [&](const Prefix& prefix, Input header) {
        return is_sum ? slot.prepare_sum(prefix, header) : slot.prepare(prefix, header);
      },
      [&] {
        client = slot.announced().client;
        return slot.finish(client);
      });
  if (!got) {
    check(!got.error().message.empty(), "an error without words");
    return false;
  }
  for (const auto& part : got->parts) check_payload(part);
  // A message that was read can be sent, and reads back as the same message.
  if (is_sum || got->status != ReplyStatus::kReply) return true;
  Codec<Real> codec(context);
  const Encoded& again = codec.encode(*got);
  UplinkSlot<Real> other(context);
  Bytes bytes;
  put_sized(bytes, std::as_bytes(std::span(again.header)));
  for (const auto section : again.sections) bytes.insert(bytes.end(), section.begin(), section.end());
  Cursor copy{bytes};
  const auto twice = receive_input(
      other, copy, FrameType::kReply, context, sizeof(Real),
      [&](const Prefix& prefix, Input header) { return other.prepare(prefix, header); },
      [&] { return other.finish(client); });
  check(twice.has_value(), "what was read cannot be sent on");
  check(twice->request_id == got->request_id && twice->parts.size() == got->parts.size(),
        "another reply came back");
  for (std::size_t k = 0; k < got->parts.size(); ++k)
    check(same_payload(twice->parts[k], got->parts[k]), "another payload came back");
  return true;
}

template <class Real>
bool run_request_of(std::uint8_t choice, Cursor input) {
  const CodecContext context = context_of(choice);
  RequestSlot<Real> slot(context);
  const auto got = receive_input(
      slot, input, FrameType::kRound, context, sizeof(Real),
      [&](const Prefix& prefix, Input header) { return slot.prepare(prefix, header); },
      [&] { return slot.finish(); });
  if (!got) {
    check(!got.error().message.empty(), "an error without words");
    return false;
  }
  for (const Downlink<Real>* body : {got->body, got->resync})
    if (body != nullptr)
      for (const auto& part : body->parts) check_payload(part);
  return true;
}

// Returns a context in which a vector of equal numbers is sent as a zstd frame.
CodecContext zstd_context() {
  CodecContext context = context_of(kLongChoice);
  context.zstd = {ZstdMode::Kind::kLevel, 3};
  return context;
}
const Vec<double>& equal_numbers() {
  static const Vec<double> made(kLongDim, 0.5);
  return made;
}

// Calls f(number, payload) for each compressor, with its number and its payload of a vector, to make seeds.
template <class F>
void for_each_payload(F f) {
  for (std::size_t number = 0; number < std::size(kSpecs); ++number) {
    const CodecContext context = context_of(static_cast<std::uint8_t>(number));
    Vec<double> v(kWireDim);
    for (std::size_t k = 0; k < v.size(); ++k) v[k] = k % 5 == 0 ? 0 : 0.25 * static_cast<double>(k) - 3;
    Scratch<double> scratch;
    PayloadBuffer<double> buffer;
    f(number, compress(context.compressor, v, {context.seed, 1, 4, RngDomain::kCompressor}, scratch, buffer));
  }
}

}  // namespace

bool run_frame(Input input) {
  bool taken = false;
  if (input.size() < kPrefixBytes) return false;
  const auto raw = input.first<kPrefixBytes>();
  for (const bool channels : {false, true}) {
    const auto prefix = read_prefix(raw, 1 << 20, channels);
    if (!prefix) continue;
    check(prefix->header_len <= kMaxHeaderBytes && prefix->payload_len <= 1 << 20,
          "a length above its limit");
    check(channels || prefix->channel == 0, "a channel where there is none");
    const Input header = input.subspan(kPrefixBytes);
    if (header.size() < prefix->header_len) continue;
    if (!check_header(raw, header.first(prefix->header_len))) continue;
    const auto again = write_prefix(prefix->type, header.first(prefix->header_len), prefix->payload_len,
                                    prefix->payload_crc, prefix->channel);
    check(std::equal(again.begin(), again.end(), raw.begin()), "another prefix has the same meaning");
    taken = true;
  }
  return taken;
}
std::vector<Bytes> frame_seeds() {
  return {bytes_of(heartbeat_frame()), bytes_of(on_channel(error_frame("no", true, 5), 7))};
}

bool run_reply(Input input) {
  Cursor cursor(input);
  const std::uint8_t choice = cursor.u8();
  return choice % 2 == 0 ? run_reply_of<float>(choice / 2, cursor) : run_reply_of<double>(choice / 2, cursor);
}
std::vector<Bytes> reply_seeds() {
  std::vector<Bytes> seeds;
  for_each_payload([&](std::size_t number, const Payload<double>& payload) {
    Codec<double> codec(context_of(static_cast<std::uint8_t>(number)));
    Uplink<double> reply;
    reply.request_id = 9;
    reply.round = 4;
    reply.client = 1;
    reply.loss = 0.5;
    reply.parts = {payload};
    const auto add = [&](const Encoded& message, bool is_sum) {
      Bytes input = message_input(static_cast<std::uint8_t>(2 * number + 1), message);
      input.insert(input.begin() + 1, std::byte{is_sum});
      seeds.push_back(std::move(input));
    };
    add(codec.encode(reply), false);
    const std::array<ClientId, 2> covers{1, 2};
    if (number == 0) add(codec.encode(reply, covers), true);
  });
  Codec<double> codec(zstd_context());
  Uplink<double> reply;
  reply.request_id = 9;
  reply.client = 1;
  reply.parts = {Payload<double>::dense(equal_numbers())};
  Bytes input = message_input(2 * kLongChoice + 1, codec.encode(reply));
  input.insert(input.begin() + 1, std::byte{0});
  seeds.push_back(std::move(input));
  return seeds;
}

bool run_request(Input input) {
  Cursor cursor(input);
  const std::uint8_t choice = cursor.u8();
  return choice % 2 == 0 ? run_request_of<float>(choice / 2, cursor)
                         : run_request_of<double>(choice / 2, cursor);
}
std::vector<Bytes> request_seeds() {
  std::vector<Bytes> seeds;
  for_each_payload([&](std::size_t number, const Payload<double>& payload) {
    // This choice also has a compressor for the downlink.
    const auto choice = static_cast<std::uint8_t>(number + std::size(kSpecs));
    Codec<double> codec(context_of(choice));
    Payload<double> as_drawn = payload;
    as_drawn.key = nullptr;
    const Downlink<double> body{4, 0, {as_drawn}};
    const auto encoded = codec.encode_body(body);
    const auto add = [&](const Encoded& message) {
      seeds.push_back(message_input(static_cast<std::uint8_t>(2 * choice + 1), message));
    };
    add(codec.encode({RequestKind::kRound, 8, 7}, encoded.get(), nullptr));
    if (number == 0) add(codec.encode({RequestKind::kEvaluate, 8, 7}, encoded.get(), nullptr));
    if (number < 4) add(codec.encode({RequestKind::kRound, 8, 7}, encoded.get(), encoded.get(), 16));
    if (number == 0) add(codec.encode({RequestKind::kShutdown, 8, 7}, nullptr, nullptr));
  });
  Codec<double> codec(zstd_context());
  const auto body = codec.encode_body(Downlink<double>{4, 0, {Payload<double>::dense(equal_numbers())}});
  seeds.push_back(
      message_input(2 * kLongChoice + 1, codec.encode({RequestKind::kRound, 8, 7}, body.get(), nullptr)));
  return seeds;
}

}  // namespace gradwire::fuzz
