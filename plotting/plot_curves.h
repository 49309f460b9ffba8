// Which runs are one curve, and what the legend calls it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "plotting/plot_runs.h"

namespace gradwire {

struct PlotCurve {
  std::string label;
  std::vector<std::size_t> runs;  // that differ in the seed alone, by number
};

// Runs whose configurations differ in the seed, and in the name that goes with it, become one curve; runs
// that repeat a seed do not. A label is the algorithm and its compressor, and the keys in which the curves
// differ beside; an algorithm that all curves share is left out where such keys tell them apart. Curves that
// nothing tells apart have the names of their runs, or else their folders. Keys that are `aside` neither tell
// curves apart nor stand in labels.
std::vector<PlotCurve> make_curves(std::span<const PlotRun> runs, std::span<const std::string> aside = {});

// A key with its value, as labels spell it: "count = 10"; of a path the last component.
std::string spell_key(const RunKeys& keys, const std::string& key);

}  // namespace gradwire
