// The contents of a folder of --state, for gradwire-server status.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fl_server/metrics/exposition.h"
#include "fl_server/run_history/run_history_file.h"
#include "fl_server/run_metadata.h"
#include "storage/run_store.h"

namespace gradwire {

inline constexpr std::string_view kRelayHasServer = "gradwire_relay_has_server";  // a metric

struct SavedRun {
  RunMetadata metadata;
  RunStage stage = RunStage::kRounds;
  Outcome outcome = Outcome::kStopped;  // valid if the run is over
  RunProgress progress;
};

// The contents of the folder.
struct StateFolder {
  std::filesystem::path state;
  std::optional<std::string> holder;  // process id of the running server
  std::string address;
  std::optional<SavedRun> run;  // empty while the server waits for its clients
  std::optional<RunHistoryContent> run_history;
  std::string no_run_history;   // the reason if run_history is empty
  std::vector<Sample> metrics;  // values of the current or the last process; may be empty
  bool is_relay = false;
};

// Reads the folder without changing it. Throws std::runtime_error (one line) if it has no run and no relay.
StateFolder read_state_folder(const std::filesystem::path& state, const std::filesystem::path& run_history);
// Returns the value of a metric with its labels, or 0 if it is missing.
double count(const StateFolder& found, std::string_view name);

}  // namespace gradwire
