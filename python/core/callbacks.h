// Calls of Python functions from the threads of a run.
#pragma once

#include <exception>
#include <mutex>
#include <pybind11/pybind11.h>
#include <stop_token>
#include <string>
#include <utility>

#include "python/core/arrays.h"
#include "python/core/lifetime.h"

namespace gradwire::python {

// Holds the GIL. The first time on a thread of C++, it makes a thread state that stays until the thread ends,
// because making one takes as long as a hundred calls.
class Gil {
 public:
  Gil();
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Passes through C++ in place of an exception of Python, which a Trouble keeps.
class PythonRaised : public std::exception {
 public:
  const char* what() const noexcept override { return "a Python function raised an exception"; }
};

// The first exception of the Python functions of a run. Further ones become notes of it. Everything here
// needs the GIL.
class Trouble {
 public:
  // Keeps an exception. Its traceback also shows `place`, as in "in the function of client 3", if that is not
  // empty.
  void keep(py::error_already_set& error, const std::string& place = {});
  void raise_if_any();  // raises what was kept

  // Sets the end of a run. Functions then are not called any more. `is_alone` says that the run uses no
  // thread but the caller's.
  void end_with(std::stop_token end, bool is_alone) {
    end_ = std::move(end);
    is_alone_ = is_alone;
  }
  // Raises SystemExit if the run was asked to end, and RuntimeError in the child of a fork.
  void check_lifetime() const;
  bool is_of_parent() const { return fork_depth() != depth_; }
  // Ends the child of a fork that a function has made, if it needs threads that the child does not have.
  void leave_function() const {
    if (is_of_parent() && !is_alone_) end_child();
  }
  std::stop_source stop;  // requests a stop once there is an exception

 private:
  [[noreturn]] static void end_child();

  py::object kept_;  // an exception; null if there was none
  std::stop_token end_;
  bool is_alone_ = false;
  const std::uint32_t depth_ = fork_depth();
};

// Returns a method, or None if `object` has only that of its base class, CLASS of gradwire.MODULE. Needs the
// GIL.
py::object own_method(const py::handle& object, const char* module, const char* base, const char* name);

// Calls f() with the GIL. A Python exception is kept in `trouble`, with the text of place(). Ctrl-C raises
// KeyboardInterrupt here.
inline std::string no_place() { return {}; }
template <class F, class Place = decltype(&no_place)>
auto call_python(Trouble& trouble, F&& f, const Place& place = no_place) {
  const Gil gil;
  const struct Leave {
    Trouble& trouble;
    ~Leave() { trouble.leave_function(); }
  } leave{trouble};
  try {
    trouble.check_lifetime();
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    return f();
  } catch (py::error_already_set& error) {
    trouble.keep(error, place());
  } catch (const py::builtin_exception& error) {
    error.set_error();
    py::error_already_set raised;
    trouble.keep(raised, place());
  }
  throw PythonRaised();
}

// Calls f() without the GIL. What Python functions raised meanwhile is raised again.
template <class F>
auto call_unlocked(Trouble& trouble, F&& f) {
  try {
    const py::gil_scoped_release unlocked;
    return f();
  } catch (const std::exception&) {
    trouble.raise_if_any();
    throw;
  }
}

}  // namespace gradwire::python
