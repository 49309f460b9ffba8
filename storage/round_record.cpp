#include "storage/round_record.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/serialize.h"
#include "proto/wire/scatter.h"

namespace gradwire {
namespace {

enum Kind : char { kReplies = 1, kState = 2 };

// Visits the start of every record: the progress without its list of clients.
void scalars(auto& progress, auto&& visit) {
  visit(progress.request_id), visit(progress.round);
  RunTotals::fields(progress.totals, visit);
}

// Takes bytes from the front. Returns false if there are too few.
bool take(std::string_view& from, std::uint64_t size, std::string_view& out) {
  if (size > from.size()) return false;
  out = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}
template <class T>
bool take(std::string_view& from, T& value) {
  std::string_view bytes;
  if (!take(from, sizeof value, bytes)) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  return true;
}

CodecContext uncompressed(CodecContext context) {
  context.zstd.kind = ZstdMode::Kind::kOff;
  return context;
}

template <class Real>
Frame frame_of(const RoundCommit<Real>& commit, std::size_t reply) {
  return reply < commit.frames.size() ? commit.frames[reply] : Frame();
}
std::uint64_t size_of(Frame frame) {
  std::uint64_t bytes = 0;
  for (const auto segment : frame) bytes += segment.size();
  return bytes;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns whether a section of the encoded reply refers to values of the reply itself.
template <class Real>
bool is_of(const UplinkView<Real>& up, std::span<const std::byte> section) {
  for (const Payload<Real>& part : up.parts)
    for (const Payload<Real>* p = &part; p != nullptr; p = p->next)
      if (std::as_bytes(p->values).data() == section.data()) return true;
  return false;
}

}  // namespace

std::string save_progress(const RunProgress& progress) {
  Saver saver;
  scalars(progress, saver);
  saver(progress.committed);
  return saver.take();
}

bool load_progress(std::string_view bytes, RunProgress& progress) {
  const std::size_t clients = progress.committed.size();
  Loader loader(bytes);
  scalars(progress, loader);
  loader(progress.committed);
  return loader.done() && progress.committed.size() == clients;
}

std::optional<RunProgress> peek_progress(std::string_view bytes) {
  RunProgress progress;
  bool good = true;
  scalars(progress, [&](auto& value) { good = good && take(bytes, value); });
  return good ? std::optional(progress) : std::nullopt;
}

std::optional<RunProgress> peek_record(std::string_view record) {
  char kind = 0, used = 0;
  std::uint64_t size = 0;
  if (!take(record, kind) || (kind != kState && kind != kReplies)) return std::nullopt;
  const bool led = kind == kState ? take(record, size) : take(record, used);
  return led ? peek_progress(record) : std::nullopt;
}

template <class Real>
RoundRecords<Real>::RoundRecords(CodecContext context) : codec_(uncompressed(std::move(context))) {}
template <class Real>
RoundRecords<Real>::~RoundRecords() = default;

// ---- writing ----

template <class Real>
std::span<const std::string_view> RoundRecords<Real>::encode(const RoundCommit<Real>& commit,
                                                             const ServerAlgorithm<Real>& server,
                                                             std::size_t state_bytes) {
  const std::uint64_t reply_bytes = bytes_of_replies(commit);
  record_.clear();
  if (reply_bytes <= state_bytes + commit.progress.committed.size() * sizeof(std::uint64_t)) {
    encode_replies(commit);
  } else {
    record_.put(static_cast<char>(kState));
    const std::string progress = save_progress(commit.progress);
    record_.put(static_cast<std::uint64_t>(progress.size()));
    record_.copy(progress);
    server.save_in_place(record_);
  }
  return record_.views();
}

template <class Real>
std::uint64_t RoundRecords<Real>::bytes_of_replies(const RoundCommit<Real>& commit) {
  std::uint64_t bytes = 0;
  for (std::size_t k = 0; k < commit.replies.size(); ++k) {
    const Frame frame = frame_of(commit, k);
    bytes += frame.empty() ? codec_.encoded_bytes(commit.replies[k]) : size_of(frame);
  }
  return bytes;
}

template <class Real>
void RoundRecords<Real>::encode_replies(const RoundCommit<Real>& commit) {
  record_.put(static_cast<char>(kReplies));
  record_.put(static_cast<char>(commit.used));
  scalars(commit.progress, [this](const auto& value) { record_.put(value); });
  record_.put(static_cast<std::uint32_t>(commit.replies.size()));
  for (std::size_t k = 0; k < commit.replies.size(); ++k) {
    record_.put(commit.replies[k].client);
    if (const Frame frame = frame_of(commit, k); !frame.empty()) {
      record_.put(size_of(frame));
      for (const auto segment : frame) record_.view(segment);
      continue;
    }
    const Encoded& message = codec_.encode(commit.replies[k]);
    record_.put(message.bytes);
    record_.copy(text_of(message.prefix));
    record_.copy(message.header);
    for (const auto section : message.sections) {
      // The other sections are in the codec's memory, until it encodes the next reply.
      if (is_of(commit.replies[k], section)) {
        record_.view(section);
      } else {
        record_.copy(text_of(section));
      }
    }
  }
}

// ---- reading ----

template <class Real>
bool RoundRecords<Real>::replay(std::string_view record, ServerAlgorithm<Real>& server,
                                RunProgress& progress) {
  if (record.empty()) return false;
  const char kind = record[0];
  record.remove_prefix(1);
  if (kind == kReplies) return replay_replies(record, server, progress);
  std::uint64_t size = 0;
  std::string_view saved;
  return kind == kState && take(record, size) && take(record, size, saved) &&
         load_progress(saved, progress) && server.load(record);
}

template <class Real>
bool RoundRecords<Real>::replay_replies(std::string_view bytes, ServerAlgorithm<Real>& server,
                                        RunProgress& progress) {
  char used = 0;
  RunProgress after;
  bool good = take(bytes, used);
  scalars(after, [&](auto& value) { good = good && take(bytes, value); });
  std::uint32_t count = 0;
  if (!good || after.round != progress.round + 1 || !take(bytes, count) || count > progress.committed.size())
    return false;
  std::vector<UplinkView<Real>> replies;
  BlockMemo draws;
  for (std::uint32_t k = 0; k < count; ++k) {
    ClientId client = 0;
    std::uint64_t size = 0;
    std::string_view message, prefix, header;
    if (!take(bytes, client) || !take(bytes, size) || !take(bytes, size, message) ||
        client >= progress.committed.size() || !take(message, kPrefixBytes, prefix))
      return false;
    const auto read = read_prefix(bytes_of(prefix).template first<kPrefixBytes>(), message.size());
    if (!read || !take(message, read->header_len, header)) return false;
    if (slots_.size() <= k) slots_.push_back(std::make_unique<UplinkSlot<Real>>(codec_.context()));
    const auto targets = slots_[k]->prepare(*read, bytes_of(header));
    if (!targets) return false;
    if (!scatter(bytes_of(message), *targets)) return false;
    const auto uplink = slots_[k]->finish(client, &draws);
    if (!uplink || !server.accepts(*uplink)) return false;
    replies.push_back(*uplink);
  }
  if (server.apply(replies) != (used != 0)) return false;
  after.committed = std::move(progress.committed);
  if (used != 0)
    for (const auto& up : replies) after.committed[up.client] = up.request_id;
  progress = std::move(after);
  return true;
}

template class RoundRecords<float>;
template class RoundRecords<double>;

}  // namespace gradwire
