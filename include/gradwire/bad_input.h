#pragma once

#include <stdexcept>

#include "gradwire/version.h"

namespace gradwire {

// Input from the user that cannot be used: an option, an experiment file, a data file. A retry would fail
// again, so programs end with the exit code for bad usage. what() is one line.
class GRADWIRE_API BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An unusable data file or description of data. what() is "FILE:LINE: what is wrong; what to do".
class GRADWIRE_API DataError : public BadInput {
 public:
  using BadInput::BadInput;
};

}  // namespace gradwire
