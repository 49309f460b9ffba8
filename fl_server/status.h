// The status of a run or a relay, read from its folder without disturbing a running process.
#pragma once

#include <filesystem>
#include <string>

namespace gradwire {

struct ShownStatus {
  std::string text;
  bool stalled = false;  // the process runs, but it waits for lost or silent peers
};

// Returns readable lines, each ended by a newline. The first line is a warning if the run or relay is
// stalled. If `run_history` is empty, it is registry.sqlite3 in `state`. Throws std::runtime_error (one line)
// if there is no run.
ShownStatus status_text(const std::filesystem::path& state, const std::filesystem::path& run_history = {});
// Returns the same, and all clients, as one JSON object.
ShownStatus status_json(const std::filesystem::path& state, const std::filesystem::path& run_history = {});

}  // namespace gradwire
