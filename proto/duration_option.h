#pragma once

#include <string>

namespace gradwire {

// What is wrong with a time as an option gives it, a whole number of milliseconds from 1 to ten years (later
// times no clock can tell); empty: nothing.
std::string trouble_of_ms(const std::string& text);

}  // namespace gradwire
