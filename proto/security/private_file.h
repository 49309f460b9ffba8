// Files with secrets. They have mode 0600 from the first byte, appear at once, and are durable when the call
// returns.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gradwire {

// Creates a file. Throws std::runtime_error, one line, also if the file exists.
void create_private(const std::filesystem::path& file, std::string_view text);
// Creates the file, or replaces it in one step.
void replace_private(const std::filesystem::path& file, std::string_view text);

// Reads at most `most` bytes of a file. Never waits: a pipe is an error. Returns nullopt if the file does not
// exist.
Result<std::optional<std::string>> read_plain(const std::filesystem::path& file, std::size_t most);

// Returns an error unless `file` is a regular file that only its owner may read.
Status check_private(const std::filesystem::path& file);

}  // namespace gradwire
