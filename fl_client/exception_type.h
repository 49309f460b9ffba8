#pragma once

#include <string>

namespace gradwire {

// Returns the type of the exception that is being handled, as in "std::bad_alloc". REQUIRES: the caller is in
// a catch block.
std::string type_of_exception();

}  // namespace gradwire
