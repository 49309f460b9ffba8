// What a process remembers on disk: generations of snapshots, and between them a log of records. All its I/O
// goes through Disk, so that a simulation can crash it at every step.
//
//   ckpt-S.bin   the state before record S: header, table of sections, sections, each with its checksum
//   ckpt-S.copy  the same once more, while it is the only snapshot
//   log-S.bin    records S, S + 1, ...: each with its number, length and checksum
//   journal      says that these files are a journal's; journal.removed: and that they are being removed
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
  kProcess,  // what is committed survives the death of the process, snapshots also a loss of power
  kPower,    // every record survives a loss of power: it is synchronised first
};

struct Section {
  std::uint32_t tag = 0;
  std::string_view bytes;
};

// A section whose bytes are given chunk by chunk, as late as they are written.
struct CowSection {
  std::uint32_t tag = 0;
  CowSnapshot* bytes = nullptr;
};

// A snapshot as bytes: the pieces view the sections and `frame`, which is filled. The bytes of a late section
// are to follow.
std::vector<std::string_view> pack_snapshot(std::uint64_t number, std::span<const Section> sections,
                                            std::string& frame, const CowSection* late = nullptr);
// Views `bytes`. Errors say what is damaged; no byte of a snapshot can change unnoticed.
Result<std::vector<Section>> unpack_snapshot(std::uint64_t number, std::string_view bytes);

class Journal {
 public:
  static constexpr std::size_t kGenerations = 3;

  // note: receives lines for the log, e.g. when something damaged is found; may be empty.
  Journal(Disk& disk, Durability durability, Log note = {});

  // recover() passes what it finds to these in order. They return false when it cannot be used: it counts as
  // damaged.
  struct Reader {
    std::function<bool(std::span<const Section>)> snapshot;
    std::function<bool(std::string_view)> record;
  };
  // The newest snapshot that verifies, and all records since, up to the first that is damaged or torn. True:
  // something was recovered. False: there is nothing. Error: there is something, and none of it can be used,
  // or the disk fails. Damaged files are renamed to *.corrupt, never removed.
  Result<bool> recover(const Reader& reader);

  // Durable on return. REQUIRES: a snapshot was written or recovered. After an error nothing more may be
  // appended.
  Status append(std::span<const std::string_view> pieces);
  // The number of the next record.
  std::uint64_t next() const { return next_; }

  // A snapshot of the state before record next(), durable on return: begin_snapshot() and write_snapshot().
  Status snapshot(std::span<const Section> sections);
  // From here on records go into another log. Returns the number for write_snapshot(), which another thread
  // may call while records are appended.
  std::uint64_t begin_snapshot();
  Status write_snapshot(std::uint64_t number, std::span<const Section> sections,
                        const CowSection* late = nullptr);

  // Whether the disk has files of a journal.
  Result<bool> is_there();
  // Removes the files of a journal, and no others. Killed in the middle: nothing is there any more, and the
  // next recover() or remove() removes the rest. Error: nothing says that these files are a journal's.
  Status remove();

 private:
  struct Names;
  Result<Names> names();
  // False: the snapshot in that file is damaged.
  Result<bool> recover_from(const std::string& name, std::uint64_t number, const Names& names,
                            const Reader& reader);
  Status read_records(const Names& names, const Reader& reader);
  Status remove_files(const Names& names);
  Status mark();
  Status write_durably(const std::string& name, std::span<const std::string_view> pieces,
                       CowSnapshot* late = nullptr);
  Status prune();
  Status set_aside(const std::string& name, const std::string& why);
  void note(const LogLine& line) const {
    if (note_) note_(line);
  }

  Disk& disk_;
  const Durability durability_;
  const Log note_;
  std::uint64_t next_ = 0;
  std::string log_;            // the file that records go into
  bool log_is_named_ = false;  // its name is durable
};

}  // namespace gradwire
