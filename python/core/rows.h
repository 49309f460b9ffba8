// Rows of the metrics for Python, in the order of gradwire.Record.
#pragma once

#include <limits>

#include "gradwire/result.h"
#include "python/core/arrays.h"

namespace gradwire::python {

inline py::tuple row_for_python(const MetricsRow& row) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  return py::make_tuple(row.round, row.loss, row.grad_norm_sq.value_or(kNone), row.accuracy.value_or(kNone),
                        row.bits_up, row.bits_down, row.bytes_up, row.bytes_down, row.grad_calls, row.replies,
                        row.seconds, row.bits_up_paper, row.bits_down_paper);
}

}  // namespace gradwire::python
