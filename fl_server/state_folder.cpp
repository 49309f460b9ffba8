#include "fl_server/state_folder.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "fl_server/metrics/metrics_endpoint.h"
#include "fl_server/plan_of_joins.h"
#include "storage/folder_disk.h"
#include "storage/journal.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMaxMetricsBytes = 256 << 10;  // many times what a server writes

// A disk that ignores all writes, because only the server may repair its files.
class ReadOnlyDisk final : public Disk {
 public:
  explicit ReadOnlyDisk(const fs::path& folder) : folder_(folder) {}
  Result<std::vector<std::string>> list() override { return folder_.list(); }
  Result<std::string> read(const std::string& name) override { return folder_.read(name); }
  Status write(const std::string&, Segments) override { return Unit{}; }
  Status append(const std::string&, Segments) override { return Unit{}; }
  Status sync(const std::string&) override { return Unit{}; }
  Status sync_folder() override { return Unit{}; }
  Status rename(const std::string&, const std::string&) override { return Unit{}; }
  Status remove(const std::string&) override { return Unit{}; }

 private:
  FolderDisk folder_;
};

// Reads the run in the folder. Returns nullopt if there is none, or an error if it cannot be read.
Result<std::optional<SavedRun>> read_state(const fs::path& state) {
  ReadOnlyDisk disk(state);
  Journal journal(disk, Durability::kProcess);
  SavedRun seen;
  const Result<bool> found = journal.recover({.snapshot =
                                                  [&](std::span<const Section> sections) {
                                                    auto said = snapshot_metadata(sections);
                                                    if (!said) return false;
                                                    Result<RunMetadata> metadata =
                                                        load_metadata(said->metadata);
                                                    if (!metadata) return false;
                                                    seen.metadata = std::move(*metadata);
                                                    seen.stage = said->stage;
                                                    seen.outcome = said->outcome;
                                                    seen.progress = said->progress;
                                                    return true;
                                                  },
                                              .record =
                                                  [&](std::string_view record) {
                                                    if (const auto end = peek_end(record)) {
                                                      seen.stage = end->stage;
                                                      seen.outcome = end->outcome;
                                                      return true;
                                                    }
                                                    seen.stage = RunStage::kRounds;
                                                    const auto progress = peek_record(record);
                                                    if (progress) seen.progress = *progress;
                                                    return progress.has_value();
                                                  }});
  if (!found) return found.error();
  return *found ? std::optional(std::move(seen)) : std::nullopt;
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string read_metrics_file(const fs::path& state) {
  std::ifstream in(state / kMetricsFileName, std::ios::binary);
  std::string text(kMaxMetricsBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

StateFolder read_state_folder(const fs::path& state, const fs::path& run_history) {
  if (!fs::is_directory(state)) throw std::runtime_error(state.string() + ": is not a folder");
  StateFolder found;
  found.state = state;
  found.holder = lock_holder(state);
  if (found.holder) found.address = first_line(state / "address");
  found.metrics = samples_of(read_metrics_file(state));
  found.is_relay = std::ranges::find(found.metrics, kRelayHasServer, &Sample::first) != found.metrics.end();
  if (found.is_relay) return found;
  Result<std::optional<SavedRun>> run = read_state(state);
  if (run) found.run = std::move(*run);
  // If a server holds the folder, it may be writing the part that could not be read.
  if (!found.run && !found.holder)
    throw std::runtime_error(
        state.string() + ": " +
        (run ? "holds no run of gradwire-server, and no relay; is it the folder of --state?"
             : run.error().message));
  const std::string id = found.run ? run_history_id(run_of(found.run->metadata.start)) : "";
  auto seen = read_run_history(run_history.empty() ? state / kRunHistoryName : run_history, id,
                               run_history_folder(state));
  if (!seen) {
    found.no_run_history = seen.error().message;
  } else if (*seen) {
    found.run_history = std::move(*seen);
  } else {
    found.no_run_history = "the registry has no record of this run";
  }
  // A client that was connected when the server was killed is no longer connected.
  if (found.run_history && !found.holder)
    for (RunHistoryClient& client : found.run_history->clients) client.connected = false;
  return found;
}

double count(const StateFolder& found, std::string_view name) {
  const auto sample = std::ranges::find(found.metrics, name, &Sample::first);
  return sample == found.metrics.end() ? 0 : sample->second;
}

}  // namespace gradwire
