#pragma once

#include <string>

namespace gradwire {

// Returns what is wrong with the time that an option gives, or "" if it is valid. A valid time is a whole
// number of milliseconds, from 1 to ten years, because clocks cannot represent much later times.
std::string trouble_of_ms(const std::string& text);

}  // namespace gradwire
