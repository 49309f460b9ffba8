// The status of a run, read from the server's folder without disturbing a running server.
#pragma once

#include <filesystem>
#include <string>

namespace gradwire {

// Returns readable lines, each ended by a newline. If `run_history` is empty, it is registry.sqlite3 in
// `state`. Throws std::runtime_error (one line) if there is no run.
std::string status_text(const std::filesystem::path& state, const std::filesystem::path& run_history = {});
// Returns the same, and all clients, as one JSON object.
std::string status_json(const std::filesystem::path& state, const std::filesystem::path& run_history = {});

}  // namespace gradwire
