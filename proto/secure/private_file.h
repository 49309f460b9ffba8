// Files for secrets: mode 0600 from their first byte.
#pragma once

#include <filesystem>
#include <string_view>

namespace gradwire {

// Throws std::runtime_error, one line; also when the file is there.
void create_private(const std::filesystem::path& file, std::string_view text);
// The same in place of what is there, in one step.
void replace_private(const std::filesystem::path& file, std::string_view text);

}  // namespace gradwire
