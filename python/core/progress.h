// The progress of a run, for a function of Python.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "python/core/callbacks.h"
#include "python/core/rows.h"

namespace gradwire::python {

// Calls tell(rounds, row) each second, with the last row as a tuple, or None before the first.
class ProgressCalls {
 public:
  ProgressCalls(py::object tell, Trouble& trouble) : tell_(std::move(tell)), trouble_(trouble) {}

  void row(const MetricsRow& row) {
    last_ = row;
    round(row.round);
  }
  void round(std::uint32_t rounds) {
    const Clock::time_point now = Clock::now();
    if (now < next_) return;
    next_ = now + kInterval;
    call_python(trouble_,
                [&] { tell_(rounds, last_ ? py::object(row_for_python(*last_)) : py::object(py::none())); });
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kInterval{1};

  py::object tell_;
  Trouble& trouble_;
  Clock::time_point next_ = Clock::now() + kInterval;
  std::optional<MetricsRow> last_;
};

}  // namespace gradwire::python
