// What a server's folder says of its run, without disturbing the server that uses it.
#pragma once

#include <filesystem>
#include <string>

namespace gradwire {

// Lines for a person, each ended by a newline. `run_history`: empty: registry.sqlite3 in `state`. Throws
// std::runtime_error (one line) where there is no run.
std::string status_text(const std::filesystem::path& state, const std::filesystem::path& run_history = {});
// The same, and all clients, as one JSON object.
std::string status_json(const std::filesystem::path& state, const std::filesystem::path& run_history = {});

}  // namespace gradwire
