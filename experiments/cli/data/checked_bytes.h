// Checksums of files, and unpacking of the bzip2 files that servers send.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gradwire {

// Returns the SHA-256 of all bytes of the open file: 64 hexadecimal digits.
Result<std::string> sha256_of(int file);

// Unpacks one or several consecutive bzip2 streams. Returns an error if they are damaged, truncated, or
// contain more than `max_bytes`.
Result<std::string> unpack_bzip2(int file, std::size_t max_bytes);

}  // namespace gradwire
