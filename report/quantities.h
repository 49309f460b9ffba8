// Quantities as text for people.
#pragma once

#include <cstdint>
#include <string>

namespace gradwire {

// Returns the number with a comma before each group of three digits, as in "22,676".
std::string count_text(std::uint64_t count);
// Format a number, as in "12.3 MB" or "950 bytes", and as in "1.24 Gbit".
std::string bytes_text(double bytes);
std::string bits_text(double bits);
// Returns events per second as "8.1", "850" or "5.2k".
std::string rate_text(double per_second);
// Returns a duration as "9 s", "3:05 min", "23:59 h", or "long" from 100 hours on.
std::string duration_text(double seconds);

}  // namespace gradwire
