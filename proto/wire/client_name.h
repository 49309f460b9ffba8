// The name of a client: its --id, which the server uses in logs and tables.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace gradwire {

inline constexpr std::size_t kLongestClientName = 64;

// Accepts one word of 1 to kLongestClientName ASCII letters, digits and punctuation. The error says what is
// wrong.
Status check_client_name(std::string_view name);

}  // namespace gradwire
