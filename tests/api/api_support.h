// Helpers of the tests of include/gradwire/.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gradwire/bad_input.h"
#include "gradwire/result.h"

namespace gradwire {

// Returns the words of the BadInput or std::logic_error that f throws, else "".
inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const BadInput& error) {
    return error.what();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

inline std::vector<double> model_of(const TrainResult& result) {
  return {result.model().begin(), result.model().end()};
}

}  // namespace gradwire
