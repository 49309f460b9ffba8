// Groups runs into curves and names the curves.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "plotting/plot_runs.h"

namespace gradwire {

struct PlotCurve {
  std::string label;
  std::vector<std::size_t> runs;  // run numbers; the runs differ only in the seed
};

// Groups runs into one curve if their configurations differ only in the seed and the run's name. Runs that
// repeat a seed get a curve of their own. A label has the algorithm and its compressor, as papers write them
// ("EF21, Top-1"), and the other keys in which curves differ. It omits the algorithm if all curves share it
// and such keys distinguish them. Curves that still have equal labels get the names of their runs, or else
// their folders. Keys in `aside` neither distinguish curves nor appear in labels.
std::vector<PlotCurve> make_curves(std::span<const PlotRun> runs, std::span<const std::string> aside = {});

// Returns a key with its value as labels spell it, as in "count = 10". A path is shortened to its last
// component.
std::string spell_key(const RunKeys& keys, const std::string& key);

}  // namespace gradwire
