#pragma once

#include <optional>
#include <string>

namespace gradwire {

// Returns the bytes of a small file, such as one of /proc, or its first megabyte if it is larger. Returns
// nullopt if it cannot be opened or read.
std::optional<std::string> whole_file(const std::string& path);

}  // namespace gradwire
