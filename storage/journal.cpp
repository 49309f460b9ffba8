#include "storage/journal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "base/crc32c.h"
#include "proto/wire/little_endian.h"

namespace gradwire {
namespace {

// The digit grows when older code cannot read the new format of snapshots or records.
constexpr std::string_view kMagicOfAnyVersion = "GWSTATE", kSnapshotMagic = "GWSTATE2";
constexpr std::uint32_t kRecordMagic = 0x43525747;  // "GWRC"
constexpr std::size_t kSnapshotHead = 8 + 8 + 4;    // magic, number, sections
constexpr std::size_t kTableEntry = 4 + 4 + 8;      // tag, checksum, length
constexpr std::size_t kRecordHead = 4 + 4 + 8 + 8;  // magic, checksum, number, length
constexpr std::string_view kDraft = ".new", kCorrupt = ".corrupt";
constexpr const char* kMarker = "journal";
constexpr const char* kRemovedMarker = "journal.removed";  // replaces the marker while the files are removed
constexpr std::string_view kMarkerText =
    "The files ckpt-*.bin, ckpt-*.copy and log-*.bin in this folder were written by gradwire.\n";

std::uint32_t checksum(std::string_view bytes, std::uint32_t before = 0) {
  return crc32c(std::as_bytes(std::span(bytes)), before);
}

std::string name_of(const char* kind, std::uint64_t number, const char* suffix) {
  char text[40];
  std::snprintf(text, sizeof text, "%s-%012llu%s", kind, static_cast<unsigned long long>(number), suffix);
  return text;
}
std::string snapshot_name(std::uint64_t number) { return name_of("ckpt", number, ".bin"); }
std::string copy_name(std::uint64_t number) { return name_of("ckpt", number, ".copy"); }
std::string log_name(std::uint64_t number) { return name_of("log", number, ".bin"); }

// Returns the number in `name` if `name` is exactly name_of(number), because other programs may have similar
// files.
std::optional<std::uint64_t> number_in(std::string_view name, std::string (*name_of)(std::uint64_t)) {
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + dash + 1, name.data() + name.size(), number);
  if (error != std::errc() || name_of(number) != name) return std::nullopt;
  return number;
}

bool is_snapshot(std::string_view name) {
  return number_in(name, snapshot_name).has_value() || number_in(name, copy_name).has_value();
}
// Returns `name` without the suffix. Empty if `name` does not end with it.
std::string_view without(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : std::string_view();
}
bool is_of_a_journal(std::string_view name) {
  const std::string_view damaged = without(name, kCorrupt);
  const std::string_view whole = damaged.empty() ? name : damaged;
  return is_snapshot(whole) || number_in(whole, log_name).has_value() || is_snapshot(without(name, kDraft));
}

// Returns the checksum of a record: over its number, its length and its bytes.
std::uint32_t record_checksum(std::string_view numbers, std::span<const std::string_view> segments) {
  std::uint32_t crc = checksum(numbers);
  for (const std::string_view segment : segments) crc = checksum(segment, crc);
  return crc;
}

}  // namespace

std::vector<std::string_view> pack_snapshot(std::uint64_t number, std::span<const Section> sections,
                                            std::string& frame, const CowSection* cow_section) {
  frame = kSnapshotMagic;
  put(frame, number);
  put(frame, static_cast<std::uint32_t>(sections.size() + (cow_section != nullptr ? 1 : 0)));
  const auto put_entry = [&frame](std::uint32_t tag, std::uint32_t crc, std::uint64_t size) {
    put(frame, tag);
    put(frame, crc);
    put(frame, size);
  };
  for (const Section& section : sections)
    put_entry(section.tag, checksum(section.bytes), section.bytes.size());
  if (cow_section != nullptr)
    put_entry(cow_section->tag, cow_section->bytes->checksum(), cow_section->bytes->size());
  put(frame, checksum(frame));
  std::vector<std::string_view> segments = {frame};
  for (const Section& section : sections) segments.push_back(section.bytes);
  return segments;
}

namespace {

// Returns the end of the table of sections, in a snapshot of any version.
Result<std::size_t> end_of_table(std::uint64_t number, std::string_view bytes) {
  if (bytes.size() < kSnapshotHead || !bytes.starts_with(kMagicOfAnyVersion))
    return Error{"it does not begin like a snapshot"};
  const std::size_t count = get<std::uint32_t>(bytes, 16);
  if (count > (bytes.size() - kSnapshotHead) / kTableEntry) return Error{"it is cut off"};
  const std::size_t end = kSnapshotHead + count * kTableEntry;
  if (bytes.size() < end + 4) return Error{"it is cut off"};
  if (get<std::uint32_t>(bytes, end) != checksum(bytes.substr(0, end)) ||
      get<std::uint64_t>(bytes, 8) != number)
    return Error{"its header is damaged"};
  return end;
}

// Returns whether the snapshot is intact but from another version of gradwire.
bool is_of_another_version(std::uint64_t number, std::string_view bytes) {
  return end_of_table(number, bytes) && !bytes.starts_with(kSnapshotMagic);
}

}  // namespace

Result<std::vector<Section>> unpack_snapshot(std::uint64_t number, std::string_view bytes) {
  const Result<std::size_t> table_end = end_of_table(number, bytes);
  if (!table_end) return table_end.error();
  if (!bytes.starts_with(kSnapshotMagic)) return Error{"it is from another version of gradwire"};
  std::vector<Section> sections;
  std::string_view rest = bytes.substr(*table_end + 4);
  for (std::size_t k = 0; k < get<std::uint32_t>(bytes, 16); ++k) {
    const std::size_t entry = kSnapshotHead + k * kTableEntry;
    const auto length = get<std::uint64_t>(bytes, entry + 8);
    if (length > rest.size()) return Error{"it is cut off"};
    sections.push_back({get<std::uint32_t>(bytes, entry), rest.substr(0, length)});
    if (checksum(sections.back().bytes) != get<std::uint32_t>(bytes, entry + 4))
      return Error{"its section " + std::to_string(k + 1) + " is damaged"};
    rest.remove_prefix(length);
  }
  if (!rest.empty()) return Error{"it is longer than its header says"};
  return sections;
}

struct Journal::Names {
  std::vector<std::uint64_t> snapshots, copies, logs;  // ascending
  std::vector<std::string> drafts;                     // files of snapshots that were never completed
  std::vector<std::string> all;                        // every file of a journal except the markers
  bool corrupt = false;                                // a snapshot was set aside
  bool marked = false;
  bool removed = false;  // a process that was removing the journal died
};

Journal::Journal(Disk& disk, Durability durability, Log note)
    : disk_(disk), durability_(durability), note_(std::move(note)), log_(log_name(0)) {}

Result<Journal::Names> Journal::names() {
  const auto files = disk_.list();
  if (!files) return files.error();
  Names found;
  for (const std::string& name : *files) {
    if (const auto number = number_in(name, snapshot_name)) found.snapshots.push_back(*number);
    if (const auto number = number_in(name, copy_name)) found.copies.push_back(*number);
    if (const auto number = number_in(name, log_name)) found.logs.push_back(*number);
    if (is_snapshot(without(name, kDraft))) found.drafts.push_back(name);
    found.corrupt |= is_snapshot(without(name, kCorrupt));
    if (is_of_a_journal(name)) found.all.push_back(name);
    found.marked |= name == kMarker;
    found.removed |= name == kRemovedMarker;
  }
  for (auto* numbers : {&found.snapshots, &found.copies, &found.logs})
    std::sort(numbers->begin(), numbers->end());
  found.removed &= !found.marked;  // if both exist, power was lost before the first file was removed
  return found;
}

Result<bool> Journal::is_there() {
  const auto found = names();
  if (!found) return found.error();
  if (found->removed) return false;
  return !found->snapshots.empty() || !found->copies.empty() || !found->logs.empty() || found->corrupt;
}

Status Journal::check_marked(const Names& names) {
  if (names.marked || names.removed || names.all.empty()) return Unit{};
  return Error{names.all.front() + " has the name of a run's file, but no file '" + kMarker +
               "' in this folder confirms that gradwire wrote it; move it away, or choose another folder"};
}

Status Journal::move_into(const std::string& subfolder) {
  const auto found = names();
  if (!found) return found.error();
  if (Status marked = check_marked(*found); !marked) return marked;
  if (found->removed) return remove_files(*found);
  for (const std::string& name : found->all)
    if (Status status = disk_.rename(name, subfolder + "/" + name); !status) return status;
  if (found->marked)
    if (Status status = disk_.rename(kMarker, subfolder + "/" + kMarker); !status) return status;
  return disk_.sync_folder();
}

Status Journal::remove() {
  const auto found = names();
  if (!found) return found.error();
  if (Status marked = check_marked(*found); !marked) return marked;
  if (found->marked) {
    if (Status status = disk_.rename(kMarker, kRemovedMarker); !status) return status;
    if (Status status = disk_.sync_folder(); !status) return status;
  }
  return remove_files(*found);
}

// REQUIRES: the marker is renamed, or the folder has no journal.
Status Journal::remove_files(const Names& names) {
  for (const std::string& name : names.all)
    if (Status status = disk_.remove(name); !status) return status;
  if (Status status = disk_.sync_folder(); !status) return status;
  if (Status status = disk_.remove(kRemovedMarker); !status) return status;
  return disk_.sync_folder();
}

Status Journal::set_aside(const std::string& name, const std::string& why) {
  note(
      LogLine::warning(name + " cannot be used: " + why + "; keeping it as " + name + std::string(kCorrupt)));
  return disk_.rename(name, name + std::string(kCorrupt));
}

// ---- reading ----

Result<bool> Journal::recover(const Reader& reader) {
  const auto found = names();
  if (!found) return found.error();
  if (found->removed) {
    if (Status status = remove_files(*found); !status) return status.error();
    return false;
  }
  for (const std::string& draft : found->drafts)
    if (Status status = disk_.remove(draft); !status) return status.error();
  for (const auto& [numbers, name_of] :
       {std::pair(&found->snapshots, &snapshot_name), std::pair(&found->copies, &copy_name)})
    for (auto number = numbers->rbegin(); number != numbers->rend(); ++number) {
      const auto used = recover_from(name_of(*number), *number, *found, reader);
      if (!used || *used) return used;
    }
  if (found->snapshots.empty() && found->copies.empty() && found->logs.empty() && !found->corrupt)
    return false;
  return Error{"no snapshot of the run can be read; its remains are the files named *.corrupt"};
}

Result<bool> Journal::recover_from(const std::string& name, std::uint64_t number, const Names& names,
                                   const Reader& reader) {
  const auto bytes = disk_.read(name);
  if (!bytes) return bytes.error();
  if (is_of_another_version(number, *bytes))
    return Error{name + " is from another version of gradwire; use that version, or choose another folder"};
  const auto sections = unpack_snapshot(number, *bytes);
  const bool usable = sections && reader.snapshot(*sections);
  if (!usable) {
    if (Status status = set_aside(name, sections ? "it is from another run" : sections.error().message);
        !status)
      return status.error();
    return false;
  }
  next_ = number;
  if (Status status = read_records(names, reader); !status) return status.error();
  log_ = log_name(next_);
  log_is_named_ = false;
  // A file with this name cannot hold a usable record.
  if (Status status = disk_.remove(log_); !status) return status.error();
  // A file that was set aside must not reappear after a crash and follow later records.
  if (Status status = disk_.sync_folder(); !status) return status.error();
  return true;
}

// Reads all consecutive records from next_ on.
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
    // The last record is torn if the process or the machine died while it was written.
    if (Status status = disk_.sync(name); !status) return status;  // the dead process may not have synced it
    if (bytes->empty())
      note(LogLine::warning(name + " is empty: the records that it held, if any, are lost"));
    if (number == *log && rest.size() > kRecordHead) {
      if (Status status = set_aside(name, "its first record is damaged"); !status) return status;
      continue;
    }
    if (!rest.empty())
      note(LogLine::warning(name + ": " + std::to_string(rest.size()) + " bytes from record " +
                            std::to_string(number) + " on are torn or damaged; ignoring them"));
  }
  return Unit{};
}

// ---- writing ----

Status Journal::append(std::span<const std::string_view> segments) {
  std::uint64_t length = 0;
  for (const std::string_view segment : segments) length += segment.size();
  numbers_.clear();
  put(numbers_, next_);
  put(numbers_, length);
  head_.clear();
  put(head_, kRecordMagic);
  put(head_, record_checksum(numbers_, segments));
  head_ += numbers_;
  record_.assign(1, head_);
  record_.insert(record_.end(), segments.begin(), segments.end());
  if (Status status = disk_.append(log_, record_); !status) return status;
  if (durability_ == Durability::kPower) {
    if (Status status = disk_.sync(log_); !status) return status;
    if (!log_is_named_)
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

Status Journal::write_snapshot(std::uint64_t number, std::span<const Section> sections,
                               const CowSection* cow_section) {
  std::string frame, whole;
  std::vector<std::string_view> segments = pack_snapshot(number, sections, frame, cow_section);
  const auto found = names();
  if (!found) return found.error();
  if (!found->marked)
    if (Status status = mark(); !status) return status;
  const bool alone = std::all_of(found->snapshots.begin(), found->snapshots.end(),
                                 [number](std::uint64_t other) { return other == number; });
  CowSnapshot* chunks = cow_section != nullptr ? cow_section->bytes : nullptr;
  if (alone && chunks != nullptr) {  // the snapshot is written twice
    for (std::string_view chunk = chunks->next(); !chunk.empty(); chunk = chunks->next()) whole += chunk;
    segments.push_back(whole);
    chunks = nullptr;
  }
  if (Status status = write_durably(snapshot_name(number), segments, chunks); !status) return status;
  if (alone)
    if (Status status = write_durably(copy_name(number), segments); !status) return status;
  // Syncs the log that leads to this snapshot. If the snapshot gets damaged, the one before and this log
  // replace it.
  const auto next = std::lower_bound(found->logs.begin(), found->logs.end(), number);
  if (durability_ == Durability::kProcess && next != found->logs.begin())
    if (Status status = disk_.sync(log_name(*std::prev(next))); !status) return status;
  if (Status status = disk_.sync_folder(); !status) return status;
  return prune();
}

Status Journal::mark() {
  if (Status status = disk_.write(kMarker, std::span(&kMarkerText, 1)); !status) return status;
  return disk_.sync(kMarker);
}

// Makes the contents durable. The name becomes durable with sync_folder().
Status Journal::write_durably(const std::string& name, std::span<const std::string_view> segments,
                              CowSnapshot* cow_snapshot) {
  const std::string draft = name + std::string(kDraft);
  const auto next_chunk = [&segments, cow_snapshot] {
    for (; !segments.empty(); segments = segments.subspan(1))
      if (const std::string_view segment = segments.front(); !segment.empty()) {
        segments = segments.subspan(1);
        return segment;
      }
    return cow_snapshot->next();
  };
  Status written =
      cow_snapshot == nullptr ? disk_.write(draft, segments) : disk_.write_chunks(draft, next_chunk);
  if (written) written = disk_.sync(draft);
  if (!written) {
    (void)disk_.remove(draft);  // on a full disk the log needs the space
    return written;
  }
  return disk_.rename(draft, name);
}

// Removes files older than the kept generations. REQUIRES: the kept files are durable.
Status Journal::prune() {
  const auto found = names();
  if (!found) return found.error();
  const std::vector<std::uint64_t>& snapshots = found->snapshots;
  if (snapshots.size() > 1)
    for (const std::uint64_t number : found->copies)
      if (Status status = disk_.remove(copy_name(number)); !status) return status;
  const std::size_t extra = snapshots.size() - std::min(kGenerations, snapshots.size());
  if (extra == 0) return Unit{};
  for (std::size_t k = 0; k < extra; ++k)
    if (Status status = disk_.remove(snapshot_name(snapshots[k])); !status) return status;
  const std::uint64_t oldest = snapshots[extra];
  // A log ends where the next one begins.
  for (std::size_t k = 0; k + 1 < found->logs.size() && found->logs[k + 1] <= oldest; ++k)
    if (Status status = disk_.remove(log_name(found->logs[k])); !status) return status;
  return Unit{};
}

}  // namespace gradwire
