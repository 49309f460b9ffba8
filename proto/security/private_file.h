// Files for secrets: mode 0600 from their first byte, whole or not there, durable when the call returns.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gradwire {

// Throws std::runtime_error, one line; also when the file is there.
void create_private(const std::filesystem::path& file, std::string_view text);
// The same in place of what is there, in one step.
void replace_private(const std::filesystem::path& file, std::string_view text);

// Reads at most `most` bytes of a file, without waiting: a pipe in its place is an error. Nothing: there is
// no such file.
Result<std::optional<std::string>> read_plain(const std::filesystem::path& file, std::size_t most);

}  // namespace gradwire
