#pragma once

#include <string>

namespace gradwire {

// What is wrong with the time that an option gives: it must be a whole number of milliseconds from 1 to ten
// years (clocks cannot represent much later times). Empty: nothing is wrong.
std::string trouble_of_ms(const std::string& text);

}  // namespace gradwire
