// The journal of a process: generations of snapshots, and a log of records between them. All its I/O goes
// through Disk, so that a simulation can crash it at every step.
//
//   ckpt-S.bin   the state before record S: header, table of sections, sections, each with its checksum
//   ckpt-S.copy  the same once more, while it is the only snapshot
//   log-S.bin    records S, S + 1, ...: each with its number, length and checksum
//   journal      marks the files as those of a journal; journal.removed marks a journal that is being removed
//
// A snapshot is written to a file of another name, made durable, and only then renamed. The last three
// snapshots are kept, with the logs that lead from each to the next. So a damaged snapshot costs time, not
// rounds, and a loss of power costs at most the records since the newest snapshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "storage/cow_snapshot.h"
#include "storage/disk.h"

namespace gradwire {

enum class Durability : std::uint8_t {
  kProcess,  // commits survive the death of the process, snapshots also a power loss
  kPower,    // every record survives a power loss, because it is synchronized first
};

struct Section {
  std::uint32_t tag = 0;
  std::string_view bytes;
};

// A section whose bytes are read chunk by chunk, while they are written.
struct CowSection {
  std::uint32_t tag = 0;
  CowSnapshot* bytes = nullptr;
};

// Encodes a snapshot. The segments refer to the sections and to `frame`, which this function fills. Write the
// bytes of `cow_section` after them.
std::vector<std::string_view> pack_snapshot(std::uint64_t number, std::span<const Section> sections,
                                            std::string& frame, const CowSection* cow_section = nullptr);
// Decodes a snapshot. The result refers to `bytes`. Errors say what is damaged; checksums detect every
// changed byte.
Result<std::vector<Section>> unpack_snapshot(std::uint64_t number, std::string_view bytes);

class Journal {
 public:
  static constexpr std::size_t kGenerations = 3;

  // `note` receives lines for the log, for example if something is damaged. It may be empty.
  Journal(Disk& disk, Durability durability, Log note = {});

  // The functions that receive what recover() finds, in order. They return false if it cannot be used. Such a
  // snapshot counts as damaged; such a record makes recover() fail.
  struct Reader {
    std::function<bool(std::span<const Section>)> snapshot;
    std::function<bool(std::string_view)> record;
  };
  // Recovers the newest valid snapshot, and all records after it up to the first that is damaged or torn.
  // Returns false if the disk has no journal. Returns an error if nothing of the journal can be used, or if
  // the disk fails. Damaged files are renamed to *.corrupt, never removed.
  Result<bool> recover(const Reader& reader);

  // Appends a record, which is durable on return. REQUIRES: a snapshot was written or recovered. After an
  // error nothing more may be appended.
  Status append(std::span<const std::string_view> segments);
  // Returns the number of the next record.
  std::uint64_t next() const { return next_; }

  // Writes a snapshot of the state before record next(), durable on return: begin_snapshot() and
  // write_snapshot().
  Status snapshot(std::span<const Section> sections);
  // Directs later records to a new log. Returns the number for write_snapshot(), which another thread may
  // call while records are appended.
  std::uint64_t begin_snapshot();
  Status write_snapshot(std::uint64_t number, std::span<const Section> sections,
                        const CowSection* cow_section = nullptr);

  // Returns whether the disk has files of a journal.
  Result<bool> is_there();
  // Moves the files of a journal, and no others, into a subfolder of the disk, which must exist. Returns an
  // error as remove() does.
  Status move_into(const std::string& subfolder);
  // Removes the files of a journal, and no others. If the process dies meanwhile, the journal counts as
  // removed, and the next recover() or remove() removes the rest. Returns an error if no mark says that these
  // files are a journal's.
  Status remove();

 private:
  struct Names;
  Result<Names> names();
  // Returns an error if no mark says that the files are a journal's.
  static Status check_marked(const Names& names);
  // Returns false if the snapshot in that file is damaged.
  Result<bool> recover_from(const std::string& name, std::uint64_t number, const Names& names,
                            const Reader& reader);
  Status read_records(const Names& names, const Reader& reader);
  Status remove_files(const Names& names);
  Status mark();
  Status write_durably(const std::string& name, std::span<const std::string_view> segments,
                       CowSnapshot* cow_snapshot = nullptr);
  Status prune();
  Status set_aside(const std::string& name, const std::string& why);
  void note(const LogLine& line) const {
    if (note_) note_(line);
  }

  Disk& disk_;
  const Durability durability_;
  const Log note_;
  std::uint64_t next_ = 0;
  std::string log_;            // the file that records go to
  bool log_is_named_ = false;  // its name is durable
  // Work space of append().
  std::string numbers_, head_;
  std::vector<std::string_view> record_;
};

}  // namespace gradwire
