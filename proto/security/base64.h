// Text of bytes: base64url without padding (RFC 4648, section 5).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gradwire {

std::string to_base64(std::span<const std::byte> bytes);
// Each value has exactly one text; the error says what is wrong with `text`.
Result<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace gradwire
