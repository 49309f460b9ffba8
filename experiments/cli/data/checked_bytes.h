// Checksums of files, and the compression that data sets are served in.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gradwire {

// Of all bytes of the open file: 64 hexadecimal digits.
Result<std::string> sha256_of(int file);

// What a bzip2 stream, or several one behind the other, holds. Error: it is damaged, cut off, or holds more
// than `max_bytes`.
Result<std::string> unpack_bzip2(int file, std::size_t max_bytes);

}  // namespace gradwire
