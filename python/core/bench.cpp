// Measurements for gradwire.bench.
#include <algorithm>
#include <cstddef>
#include <ctime>
#include <thread>
#include <vector>

#include "python/core/bind.h"
#include "python/core/python_oracle.h"

namespace gradwire::python {
namespace {

// Returns the processor time of f() on this thread, in seconds.
template <class F>
double thread_seconds_of(F&& f) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double started = now();
  f();
  return now() - started;
}

// Returns the seconds of a call, and of the two copies of dim numbers that a call makes.
py::tuple time_oracle(const py::object& oracle, std::size_t calls, bool on_other_thread) {
  Callbacks callbacks;
  const OracleParts parts(oracle);
  const auto made = python_oracle<double>(parts, callbacks.arrays, callbacks);
  std::vector<double> x(parts.dim), gradient(parts.dim), x_copy(parts.dim), gradient_copy(parts.dim);
  double called = 0, copied = 0;
  const auto measure = [&] {
    made->loss_and_gradient(x, {}, gradient);  // makes the arrays
    called = thread_seconds_of([&] {
      for (std::size_t k = 0; k < calls; ++k) made->loss_and_gradient(x, {}, gradient);
    });
    copied = thread_seconds_of([&] {
      for (std::size_t k = 0; k < calls; ++k) {
        std::copy(x.begin(), x.end(), x_copy.begin());
        std::copy(gradient_copy.begin(), gradient_copy.end(), gradient.begin());
        asm volatile("" : : "r"(x_copy.data()), "r"(gradient.data()) : "memory");  // the copies are needed
      }
    });
  };
  call_unlocked(callbacks.trouble, [&] {
    if (on_other_thread)
      std::jthread(measure).join();
    else
      measure();
  });
  return py::make_tuple(called / static_cast<double>(calls), copied / static_cast<double>(calls));
}

}  // namespace

void bind_bench(py::module_& m) { m.def("time_oracle", &time_oracle); }

}  // namespace gradwire::python
