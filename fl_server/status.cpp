#include "fl_server/status.h"

#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

#include "fl_server/durable_run.h"
#include "fl_server/run_about.h"
#include "proto/experiment.pb.h"
#include "proto/folder_disk.h"
#include "proto/journal.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

// Nothing that is read is put in order: that is for the server.
class ReadOnlyDisk final : public Disk {
 public:
  explicit ReadOnlyDisk(const fs::path& folder) : folder_(folder) {}
  Result<std::vector<std::string>> list() override { return folder_.list(); }
  Result<std::string> read(const std::string& name) override { return folder_.read(name); }
  Status write(const std::string&, Pieces) override { return Unit{}; }
  Status append(const std::string&, Pieces) override { return Unit{}; }
  Status sync(const std::string&) override { return Unit{}; }
  Status sync_folder() override { return Unit{}; }
  Status rename(const std::string&, const std::string&) override { return Unit{}; }
  Status remove(const std::string&) override { return Unit{}; }

 private:
  FolderDisk folder_;
};

struct Seen {
  RunAbout about;
  RunStage stage = RunStage::kRounds;
  Ledger ledger;
};

std::optional<Seen> look(const fs::path& state) {
  ReadOnlyDisk disk(state);
  Journal journal(disk, Durability::kProcess);
  Seen seen;
  const Result<bool> found = journal.recover({.snapshot =
                                                  [&](std::span<const Section> sections) {
                                                    auto said = snapshot_about(sections);
                                                    if (!said) return false;
                                                    Result<RunAbout> about = load_about(said->about);
                                                    if (!about) return false;
                                                    seen.about = std::move(*about);
                                                    seen.stage = said->stage;
                                                    seen.ledger = said->ledger;
                                                    return true;
                                                  },
                                              .record =
                                                  [&](std::string_view record) {
                                                    const auto ledger = peek_record(record);
                                                    if (ledger) seen.ledger = *ledger;
                                                    return ledger.has_value();
                                                  }});
  return found && *found ? std::optional(std::move(seen)) : std::nullopt;
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string last_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line, last;
  while (std::getline(in, line)) last = line;
  return last;
}

// "loss 0.43 at round 1200"
std::string last_evaluation(const fs::path& metrics) {
  const std::string line = last_line(metrics);
  const std::size_t first = line.find(','), second = line.find(',', first + 1);
  if (second == std::string::npos || line.starts_with("round")) return "none yet";
  return "loss " + line.substr(first + 1, second - first - 1) + " at round " + line.substr(0, first);
}

}  // namespace

std::string status_text(const fs::path& state) {
  if (!fs::is_directory(state)) throw std::runtime_error(state.string() + ": is no folder");
  const auto holder = lock_holder(state);
  const auto seen = look(state);
  std::string text;
  const auto row = [&](const std::string& name, const std::string& value) {
    text += name + std::string(12 - name.size(), ' ') + value + "\n";
  };
  const std::string server =
      holder ? "process " + *holder + ", listening on " + first_line(state / "address") : "not running";
  if (!seen) {
    if (!holder)
      throw std::runtime_error(state.string() +
                               ": holds no run of gradwire-server; was it the folder of --state?");
    row("server", server + ", waiting for its clients");
    return text;
  }
  const proto::Experiment& e = seen->about.resolved;
  const Totals& totals = seen->ledger.totals;
  row("run",
      e.name() + ": " + e.algorithm().name() + ", " + std::to_string(e.clients().count()) + " clients");
  row("server", seen->stage == RunStage::kOver ? server + "; the run is over"
                : holder                       ? server
                                               : server + "; started with the same arguments it goes on");
  row("round", std::to_string(seen->ledger.round) + " of " + std::to_string(e.run().rounds()) + " committed");
  row("evaluation", last_evaluation(state / "metrics.csv"));
  row("received", std::to_string(totals.bytes_up) + " bytes");
  row("sent", std::to_string(totals.bytes_down) + " bytes");
  row("time", std::to_string(static_cast<long long>(totals.seconds)) + " s of rounds");
  row("durability", e.server().durability());
  return text;
}

}  // namespace gradwire
