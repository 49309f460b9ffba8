// Numbers of one curve in one panel: those of a single run, or the median and a band of several runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gradwire {

enum class Band : std::uint8_t { kNone, kQuartiles, kRange };

// One run, as two columns of equal length.
struct RunSeries {
  std::vector<double> x, y;
};

struct Series {
  std::vector<double> x, y;
  std::vector<double> low, high;  // ends of the band; empty without a band
};

// Returns the median over the runs and the band, at each x of any run. The band reaches from the lower to the
// upper quartile, interpolated between the two nearest ranks, or from the smallest to the largest value.
// Between its rows a run is interpolated, in logarithms on a logarithmic axis (log_x, log_y). After its last
// row it keeps its last value. The curve ends once half of the runs have ended. Numbers that are not finite
// count as larger than all others. REQUIRES: x does not decrease.
Series summarise(std::span<const RunSeries> runs, Band band, bool log_x, bool log_y);

}  // namespace gradwire
