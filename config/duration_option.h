#pragma once

#include <string>

namespace gradwire {

// Returns the error in the time that an option gives, or "" if it is valid. It must be a whole number of
// milliseconds from 1 to ten years (clocks cannot represent much later times).
std::string trouble_of_ms(const std::string& text);

}  // namespace gradwire
