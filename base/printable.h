#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gradwire {

// Returns `text` fit for a terminal and for one line of a log. Writes as \u202e what would move a cursor,
// forge a line or turn the direction of reading: control characters (C0, C1, DEL), line separators and
// bidirectional marks. Writes as \xff each byte that is not UTF-8. Cuts what is longer than `most` bytes, and
// appends "...".
std::string printable(std::string_view text, std::size_t most = std::string_view::npos);

// Returns true if `text` holds a character that printable() writes as \u.
bool has_control_characters(std::string_view text);

}  // namespace gradwire
