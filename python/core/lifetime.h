// Runs that end early because the program exits, or because this is the child of a fork.
#pragma once

#include <cstdint>
#include <pybind11/pybind11.h>
#include <stop_token>

namespace gradwire::python {

namespace py = pybind11;

// The number of forks between the process that imported the module and this one.
std::uint32_t fork_depth();

// A run in progress. When the program exits, it asks all runs to stop and waits for them, because Python lets
// no thread come back to it from C++ after that. Made and destroyed with the GIL.
class Running {
 public:
  Running();
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  void stop() { stop_.request_stop(); }

 private:
  std::stop_source stop_;
};

void bind_lifetime(py::module_& m);

}  // namespace gradwire::python
