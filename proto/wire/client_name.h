// The name of a client: its --id, and what the server calls it in logs and tables.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace gradwire {

inline constexpr std::size_t kLongestClientName = 64;

// One word of 1 to kLongestClientName ASCII letters, digits and signs; the error says what is wrong.
Status check_client_name(std::string_view name);

}  // namespace gradwire
