// Targets for the disk of a restarting server. Checksums protect all of it, so random changes are refused.
// These targets also try changed bytes with correct checksums.
#include <map>
#include <memory>

#include "fl_server/run_metadata.h"
#include "storage/journal.h"
#include "storage/round_record.h"
#include "storage/run_store.h"
#include "tests/fuzz/served_run.h"
#include "tests/storage/simulated_disk.h"

namespace gradwire::fuzz {
namespace {

// The files that a server left on its disk, and its states.
struct Left {
  std::map<std::string, std::string> files;
  std::vector<std::string> states;
  std::shared_ptr<const RunContext<double>> run_context;
  std::vector<Bytes> sections;  // sections of its newest snapshot: tag u8, length u16, bytes
};
std::shared_ptr<const RunContext<double>> run_context_of(std::span<const Section> sections) {
  const auto said = snapshot_metadata(sections);
  if (!said) return nullptr;
  const auto metadata = load_metadata(said->metadata);
  if (!metadata) return nullptr;
  return make_run_context<double>(plan_of_snapshot(metadata->asked, metadata->resolved, metadata->table),
                                  Role::kServer);
}
const Left& left() {
  static const Left made = [] {
    Left l;
    SimulatedDisk disk;
    l.states = serve({}, false, disk).states;
    const auto names = disk.list().value();
    for (const std::string& name : names) l.files[name] = disk.contents(name);
    Journal journal(disk, Durability::kProcess);
    (void)journal.recover({.snapshot =
                               [&](std::span<const Section> sections) {
                                 l.run_context = run_context_of(sections);
                                 l.sections.clear();
                                 for (const Section& section : sections) {
                                   Bytes bytes;
                                   put_u8(bytes, section.tag);
                                   put_sized(bytes, std::as_bytes(std::span(section.bytes)));
                                   l.sections.push_back(std::move(bytes));
                                 }
                                 return true;
                               },
                           .record = [](std::string_view) { return true; }});
    check(l.run_context != nullptr, "the server left no snapshot");
    return l;
  }();
  return made;
}

}  // namespace

// Reads sections, each with tag u8, length u16 and bytes. Tag 255 ends them, and a record follows.
bool run_snapshot(Input input) {
  Cursor cursor(input);
  std::vector<Section> sections;
  while (!cursor.at_end()) {
    const std::uint8_t tag = cursor.u8();
    if (tag == 255) break;
    sections.push_back({tag, text_of(cursor.bytes(cursor.u16()))});
  }
  const Input record = cursor.rest();
  std::string frame, packed;
  for (const std::string_view segment : pack_snapshot(3, sections, frame)) packed += segment;
  const auto unpacked = unpack_snapshot(3, packed);
  check(unpacked && unpacked->size() == sections.size(), "a snapshot cannot be read back");
  for (std::size_t k = 0; k < sections.size(); ++k)
    check((*unpacked)[k].tag == sections[k].tag && (*unpacked)[k].bytes == sections[k].bytes,
          "another section was read back");
  (void)unpack_snapshot(3, text_of(input));

  const auto server = make_server<double>(left().run_context);
  RunProgress progress;
  progress.committed.resize(kRealClients);
  const bool taken = load_snapshot<double>(sections, *server, progress, {});
  if (taken) check(server->model().size() == 8, "a model of another length was loaded");
  if (const auto said = snapshot_metadata(sections)) (void)load_metadata(said->metadata);
  for (const Section& section : sections) {
    (void)peek_progress(section.bytes);
    (void)load_metadata(section.bytes);
  }
  (void)peek_end(text_of(record));
  ClientTable table(kRealClients);
  if (const auto note = peek_note(text_of(record)); note && read_late_join(*note, table))
    check(table.joined_count() == 1, "a record of a join adds no client");
  (void)peek_record(text_of(record));
  RoundRecords<double> records(codec_context(*left().run_context, {}));
  const std::uint32_t round = progress.round;
  if (records.replay(text_of(record), *server, progress))
    check(progress.round == round + 1, "a record that is not of the next round was used");
  return taken;
}
std::vector<Bytes> snapshot_seeds() {
  Bytes seed;
  for (const Bytes& section : left().sections) seed.insert(seed.end(), section.begin(), section.end());
  std::vector<Bytes> seeds{seed};
  SimulatedDisk disk;
  for (const auto& [name, bytes] : left().files) {
    const std::string_view segment = bytes;
    check(disk.write(name, std::span(&segment, 1)).has_value(), "no room");
  }
  Journal journal(disk, Durability::kProcess);
  (void)journal.recover({.snapshot = [](std::span<const Section>) { return true; },
                         .record =
                             [&](std::string_view record) {
                               Bytes with = seed;
                               put_u8(with, 255);
                               const Bytes bytes = bytes_of(record);
                               with.insert(with.end(), bytes.begin(), bytes.end());
                               seeds.push_back(std::move(with));
                               return true;
                             }});
  return seeds;
}

namespace {

void check_recovered(const std::string& state, const std::string& fresh, std::uint32_t round) {
  const auto& states = left().states;
  const bool is_known = state == fresh || std::find(states.begin(), states.end(), state) != states.end();
  check(is_known, "a state was recovered that no server had");
  check(round == 0 || state == states.at(round - 1), "the state is not that of its round");
}

}  // namespace

// Damages the files of a journal, and recovers the journal. Each damage has a file number u8, a kind u8, and:
//   0  a place u16 and its new byte u8
//   1  a length u16, to which the file is cut
//   2  nothing: the file is removed
//   3  new contents: a length u16 and the bytes
bool run_journal(Input input) {
  auto files = left().files;
  Cursor cursor(input);
  while (!cursor.at_end() && !files.empty()) {
    const auto file = std::next(files.begin(), cursor.u8() % files.size());
    std::string& bytes = file->second;
    switch (cursor.u8() % 4) {
      case 0: {
        const std::size_t at = cursor.u16();
        const auto value = static_cast<char>(cursor.u8());
        if (!bytes.empty()) bytes[at % bytes.size()] = value;
        break;
      }
      case 1: bytes.resize(std::min<std::size_t>(bytes.size(), cursor.u16())); break;
      case 2: files.erase(file); break;
      default: bytes = text_of(cursor.bytes(cursor.u16()));
    }
  }
  SimulatedDisk disk;
  for (const auto& [name, bytes] : files) {
    const std::string_view segment = bytes;
    check(disk.write(name, std::span(&segment, 1)).has_value(), "no room");
  }
  LazyBackground background;
  const auto server = make_server<double>(left().run_context);
  const std::string fresh = server->save();
  RunProgress progress;
  Journal journal(disk, Durability::kProcess);
  RunStore<double> store(journal, background, codec_context(*left().run_context, {}), *server, progress,
                         "about");
  const auto found =
      journal.recover({.snapshot = [&](std::span<const Section> sections) { return store.load(sections); },
                       .record = [&](std::string_view record) { return store.replay(record); }});
  const auto is_there = journal.is_there();
  check(is_there.has_value(), "a disk that reads cannot be looked at");
  if (found && *found) {
    check_recovered(server->save(), fresh, progress.round);
    check(*is_there, "what was recovered is not there");
  }
  if (journal.remove()) {
    const auto left_over = journal.is_there();
    check(left_over && !*left_over, "a journal that was removed is there");
  }
  return true;
}
std::vector<Bytes> journal_seeds() {
  std::vector<Bytes> seeds;
  for (unsigned file = 0; file < left().files.size(); ++file)
    for (unsigned what = 0; what < 4; ++what) {
      Bytes seed;
      put_u8(seed, file);
      put_u8(seed, what);
      put_u16(seed, 40);
      put_u8(seed, 7);
      seeds.push_back(std::move(seed));
    }
  return seeds;
}

}  // namespace gradwire::fuzz
