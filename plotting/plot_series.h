// The numbers of one curve in one panel: of one run as they are, of several their median and a band around
// it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gradwire {

enum class Band : std::uint8_t { kNone, kQuartiles, kRange };

// One run: two columns of equal length.
struct RunSeries {
  std::vector<double> x, y;
};

struct Series {
  std::vector<double> x, y;
  std::vector<double> low, high;  // of the band; empty: there is none
};

// At each x of any run, the median over the runs and the band around it: from the lower to the upper quartile
// (between the two nearest runs as far as their ranks say), or from the smallest to the largest. Between its
// rows a run is interpolated, on a logarithmic axis (log_x, log_y) its logarithm; behind its last row it
// keeps its last value. The curve ends where half of the runs have ended. Not finite counts as larger than
// all else. REQUIRES: x does not fall.
Series summarise(std::span<const RunSeries> runs, Band band, bool log_x, bool log_y);

}  // namespace gradwire
