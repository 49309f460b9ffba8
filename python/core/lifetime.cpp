#include "python/core/lifetime.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace gradwire::python {
namespace {

constexpr std::chrono::milliseconds kLook{1};

std::atomic<std::uint32_t> forks{0};
std::vector<Running*> runs;  // in progress; guarded by the GIL
bool is_exiting = false;     // guarded by the GIL

void end_all() {
  is_exiting = true;
  for (Running* run : runs) run->stop();
  while (!runs.empty()) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    const py::gil_scoped_release unlocked;
    std::this_thread::sleep_for(kLook);
  }
}

void begin_child() {
  ++forks;
  runs.clear();
}

}  // namespace

std::uint32_t fork_depth() { return forks.load(std::memory_order_relaxed); }

Running::Running() {
  if (is_exiting) throw std::runtime_error("the program exits, so it begins no run");
  runs.push_back(this);
}
Running::~Running() { std::erase(runs, this); }

void bind_lifetime(py::module_& m) {
  m.def("end_all", &end_all);
  m.def("begin_child", &begin_child);
  // Temporary folders are deleted at the exit. This lets it happen after the end of the sweeps that use them.
  py::module_::import("weakref").attr("finalize")(m, m.attr("end_all")).attr("detach")();
  py::module_::import("atexit").attr("register")(m.attr("end_all"));
  const py::module_ os = py::module_::import("os");
  if (py::hasattr(os, "register_at_fork"))
    os.attr("register_at_fork")(py::arg("after_in_child") = m.attr("begin_child"));
}

}  // namespace gradwire::python
