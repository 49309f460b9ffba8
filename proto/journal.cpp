#include "proto/journal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "proto/frame.h"
#include "proto/little_endian.h"

namespace gradwire {
namespace {

constexpr std::string_view kSnapshotMagic = "GWSTATE1";
constexpr std::uint32_t kRecordMagic = 0x43525747;  // "GWRC"
constexpr std::size_t kSnapshotHead = 8 + 8 + 4;    // magic, number, sections
constexpr std::size_t kTableEntry = 4 + 4 + 8;      // tag, checksum, length
constexpr std::size_t kRecordHead = 4 + 4 + 8 + 8;  // magic, checksum, number, length
constexpr std::string_view kDraft = ".new", kCorrupt = ".corrupt", kSuffix = ".bin";

std::uint32_t checksum(std::string_view bytes, std::uint32_t before = 0) {
  return crc32c(std::as_bytes(std::span(bytes)), before);
}

std::string name_of(const char* kind, std::uint64_t number) {
  char text[40];
  std::snprintf(text, sizeof text, "%s-%012llu.bin", kind, static_cast<unsigned long long>(number));
  return text;
}
std::string snapshot_name(std::uint64_t number) { return name_of("ckpt", number); }
std::string log_name(std::uint64_t number) { return name_of("log", number); }

// The number in KIND-NUMBER.bin.
std::optional<std::uint64_t> number_in(std::string_view name, std::string_view kind) {
  if (!name.starts_with(kind) || !name.ends_with(kSuffix) ||
      name.size() <= kind.size() + 1 + kSuffix.size() || name[kind.size()] != '-')
    return std::nullopt;
  const std::string_view digits =
      name.substr(kind.size() + 1, name.size() - kind.size() - 1 - kSuffix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// The checksum of a record: of its number, its length and its bytes.
std::uint32_t record_checksum(std::string_view numbers, std::span<const std::string_view> pieces) {
  std::uint32_t crc = checksum(numbers);
  for (const std::string_view piece : pieces) crc = checksum(piece, crc);
  return crc;
}

}  // namespace

std::vector<std::string_view> pack_snapshot(std::uint64_t number, std::span<const Section> sections,
                                            std::string& frame) {
  frame = kSnapshotMagic;
  put(frame, number);
  put(frame, static_cast<std::uint32_t>(sections.size()));
  for (const Section& section : sections) {
    put(frame, section.tag);
    put(frame, checksum(section.bytes));
    put(frame, static_cast<std::uint64_t>(section.bytes.size()));
  }
  put(frame, checksum(frame));
  std::vector<std::string_view> pieces = {frame};
  for (const Section& section : sections) pieces.push_back(section.bytes);
  return pieces;
}

Result<std::vector<Section>> unpack_snapshot(std::uint64_t number, std::string_view bytes) {
  if (bytes.size() < kSnapshotHead || !bytes.starts_with(kSnapshotMagic))
    return Error{"it does not begin as a snapshot does"};
  const std::size_t count = get<std::uint32_t>(bytes, 16);
  if (count > (bytes.size() - kSnapshotHead) / kTableEntry) return Error{"it is cut off"};
  const std::size_t table_end = kSnapshotHead + count * kTableEntry;
  if (bytes.size() < table_end + 4) return Error{"it is cut off"};
  if (get<std::uint32_t>(bytes, table_end) != checksum(bytes.substr(0, table_end)) ||
      get<std::uint64_t>(bytes, 8) != number)
    return Error{"its header is damaged"};
  std::vector<Section> sections;
  std::string_view rest = bytes.substr(table_end + 4);
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t entry = kSnapshotHead + k * kTableEntry;
    const auto length = get<std::uint64_t>(bytes, entry + 8);
    if (length > rest.size()) return Error{"it is cut off"};
    sections.push_back({get<std::uint32_t>(bytes, entry), rest.substr(0, length)});
    if (checksum(sections.back().bytes) != get<std::uint32_t>(bytes, entry + 4))
      return Error{"its section " + std::to_string(k + 1) + " is damaged"};
    rest.remove_prefix(length);
  }
  if (!rest.empty()) return Error{"it is longer than it says"};
  return sections;
}

struct Journal::Names {
  std::vector<std::uint64_t> snapshots, logs;  // ascending
  std::vector<std::string> drafts;             // of snapshots that nobody finished
  bool corrupt = false;                        // a snapshot was set aside
};

Journal::Journal(Disk& disk, Durability durability, std::function<void(const std::string&)> note)
    : disk_(disk), durability_(durability), note_(std::move(note)), log_(log_name(0)) {}

Result<Journal::Names> Journal::names() {
  const auto files = disk_.list();
  if (!files) return files.error();
  Names found;
  for (const std::string& name : *files) {
    if (const auto number = number_in(name, "ckpt")) found.snapshots.push_back(*number);
    if (const auto number = number_in(name, "log")) found.logs.push_back(*number);
    if (name.starts_with("ckpt-") && name.ends_with(kDraft)) found.drafts.push_back(name);
    found.corrupt |= name.starts_with("ckpt-") && name.ends_with(kCorrupt);
  }
  std::sort(found.snapshots.begin(), found.snapshots.end());
  std::sort(found.logs.begin(), found.logs.end());
  return found;
}

Status Journal::set_aside(const std::string& name, const std::string& why) {
  note(name + " cannot be used: " + why + "; it is kept as " + name + std::string(kCorrupt));
  return disk_.rename(name, name + std::string(kCorrupt));
}

// ---- reading ----

Result<bool> Journal::recover(const Reader& reader) {
  const auto found = names();
  if (!found) return found.error();
  for (const std::string& draft : found->drafts)
    if (Status status = disk_.remove(draft); !status) return status.error();
  for (auto number = found->snapshots.rbegin(); number != found->snapshots.rend(); ++number) {
    const auto used = recover_from(*number, *found, reader);
    if (!used || *used) return used;
  }
  if (found->snapshots.empty() && found->logs.empty() && !found->corrupt) return false;
  return Error{"no snapshot of the run can be read; the files named *.corrupt are what is left of it"};
}

// False: the snapshot is damaged.
Result<bool> Journal::recover_from(std::uint64_t number, const Names& names, const Reader& reader) {
  const std::string name = snapshot_name(number);
  const auto bytes = disk_.read(name);
  if (!bytes) return bytes.error();
  const auto sections = unpack_snapshot(number, *bytes);
  const bool usable = sections && reader.snapshot(*sections);
  if (!usable) {
    if (Status status = set_aside(name, sections ? "it is of another run" : sections.error().message);
        !status)
      return status.error();
    return false;
  }
  next_ = number;
  if (Status status = read_records(names, reader); !status) return status.error();
  log_ = log_name(next_);
  log_is_named_ = false;
  // What lies there holds no record that could be used.
  if (Status status = disk_.remove(log_); !status) return status.error();
  if (durability_ == Durability::kPower)
    if (Status status = disk_.sync_folder(); !status) return status.error();
  return true;
}

// All records from next_ on that follow each other.
Status Journal::read_records(const Names& names, const Reader& reader) {
  auto log = std::upper_bound(names.logs.begin(), names.logs.end(), next_);
  if (log != names.logs.begin()) --log;
  for (; log != names.logs.end(); ++log) {
    const std::string name = log_name(*log);
    if (*log > next_) {  // it follows records that are lost
      if (Status status = set_aside(name, "the records before it are lost"); !status) return status;
      continue;
    }
    const auto bytes = disk_.read(name);
    if (!bytes) return bytes.error();
    std::string_view rest = *bytes;
    std::uint64_t number = *log;
    for (;; ++number) {
      if (rest.size() < kRecordHead || get<std::uint32_t>(rest, 0) != kRecordMagic) break;
      const auto length = get<std::uint64_t>(rest, 16);
      if (get<std::uint64_t>(rest, 8) != number || length > rest.size() - kRecordHead) break;
      const std::string_view record = rest.substr(kRecordHead, length);
      if (get<std::uint32_t>(rest, 4) != record_checksum(rest.substr(8, 16), std::span(&record, 1))) break;
      rest.remove_prefix(kRecordHead + length);
      if (number < next_) continue;
      if (!reader.record(record))
        return Error{name + ": record " + std::to_string(number) +
                     " does not fit the run; was it written by another version of gradwire?"};
      ++next_;
    }
    // The last record is torn when the process, or the machine, died while it was written.
    if (durability_ == Durability::kPower)  // records of a process that died before it had synchronised them
      if (Status status = disk_.sync(name); !status) return status;
    if (number == *log && rest.size() > kRecordHead) {
      if (Status status = set_aside(name, "its first record is damaged"); !status) return status;
      continue;
    }
    if (!rest.empty())
      note(name + ": " + std::to_string(rest.size()) + " bytes from record " + std::to_string(number) +
           " on are torn or damaged and are left out");
  }
  return Unit{};
}

// ---- writing ----

Status Journal::durable(const std::string& name) {
  if (durability_ == Durability::kProcess) return Unit{};
  return disk_.sync(name);
}

Status Journal::append(std::span<const std::string_view> pieces) {
  std::string numbers;
  std::uint64_t length = 0;
  for (const std::string_view piece : pieces) length += piece.size();
  put(numbers, next_);
  put(numbers, length);
  std::string head;
  put(head, kRecordMagic);
  put(head, record_checksum(numbers, pieces));
  head += numbers;
  std::vector<std::string_view> all = {head};
  all.insert(all.end(), pieces.begin(), pieces.end());
  if (Status status = disk_.append(log_, all); !status) return status;
  if (Status status = durable(log_); !status) return status;
  if (durability_ == Durability::kPower && !log_is_named_) {
    if (Status status = disk_.sync_folder(); !status) return status;
    log_is_named_ = true;
  }
  ++next_;
  return Unit{};
}

Status Journal::snapshot(std::span<const Section> sections) {
  return write_snapshot(begin_snapshot(), sections);
}

std::uint64_t Journal::begin_snapshot() {
  if (const std::string name = log_name(next_); name != log_) {
    log_ = name;
    log_is_named_ = false;
  }
  return next_;
}

Status Journal::write_snapshot(std::uint64_t number, std::span<const Section> sections) {
  std::string frame;
  const std::vector<std::string_view> pieces = pack_snapshot(number, sections, frame);
  const std::string name = snapshot_name(number), draft = name + std::string(kDraft);
  Status written = disk_.write(draft, pieces);
  if (written) written = durable(draft);
  if (!written) {
    (void)disk_.remove(draft);  // on a full disk the log needs its room
    return written;
  }
  if (Status status = disk_.rename(draft, name); !status) return status;
  if (durability_ == Durability::kPower)
    if (Status status = disk_.sync_folder(); !status) return status;
  return prune();
}

// Removes what is older than the generations that are kept.
Status Journal::prune() {
  const auto found = names();
  if (!found) return found.error();
  const std::size_t extra = found->snapshots.size() - std::min(kGenerations, found->snapshots.size());
  if (extra == 0) return Unit{};
  for (std::size_t k = 0; k < extra; ++k)
    if (Status status = disk_.remove(snapshot_name(found->snapshots[k])); !status) return status;
  const std::uint64_t oldest = found->snapshots[extra];
  // A log ends where the next one begins.
  for (std::size_t k = 0; k + 1 < found->logs.size() && found->logs[k + 1] <= oldest; ++k)
    if (Status status = disk_.remove(log_name(found->logs[k])); !status) return status;
  return Unit{};
}

}  // namespace gradwire
