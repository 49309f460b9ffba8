#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gradwire {

// Returns `text` in a form that is safe for a terminal and for one line of a log. Writes control characters
// (C0, C1, DEL), line separators and bidirectional marks as in \u202e. Writes each byte that is not UTF-8 as
// in \xff. Cuts the result after `most` bytes and appends "...".
std::string printable(std::string_view text, std::size_t most = std::string_view::npos);

// Returns `text` as a string of JSON, with quotes, in a form that is as safe. Each byte that is not UTF-8
// becomes U+FFFD.
std::string json_string(std::string_view text);

// Returns true if `text` holds a character that printable() writes as \u.
bool has_control_characters(std::string_view text);

}  // namespace gradwire
