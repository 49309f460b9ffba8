#pragma once

#include <string>
#include <string_view>

namespace gradwire {

// `text` fit for a terminal and for one line of a log: control characters become '?', bytes that are not
// UTF-8 U+FFFD.
std::string printable(std::string_view text);

}  // namespace gradwire
