// The version of the library, and the mark of what a shared library shows.
#pragma once

#include <string_view>

#define GRADWIRE_VERSION "0.2.0"  // of these headers; CMake reads it here

#define GRADWIRE_API __attribute__((visibility("default")))

namespace gradwire {

// Returns the version of the library that the program uses, as "0.2.0".
GRADWIRE_API std::string_view version();

}  // namespace gradwire
