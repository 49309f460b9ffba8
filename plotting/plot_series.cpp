#include "plotting/plot_series.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradwire {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double to_axis(double value, bool logarithmic) {
  if (std::isnan(value)) return kInfinity;
  return logarithmic ? (value > 0 ? std::log(value) : -kInfinity) : value;
}
double from_axis(double value, bool logarithmic) { return logarithmic ? std::exp(value) : value; }

// A run that is read from left to right.
class Walk {
 public:
  Walk(const RunSeries& run, bool log_y) : x_(run.x) {
    y_.reserve(run.y.size());
    for (const double y : run.y) y_.push_back(to_axis(y, log_y));
  }
  // Returns y at x. REQUIRES: x does not decrease from call to call.
  double at(double x, bool log_x) {
    while (next_ < x_.size() && x_[next_] <= x) ++next_;
    if (next_ == 0) return y_.front();
    const double left = y_[next_ - 1];
    if (next_ == x_.size() || x_[next_ - 1] == x) return left;
    const double right = y_[next_];
    if (!std::isfinite(left) || !std::isfinite(right)) return left;
    const double a = x_[next_ - 1], b = x_[next_];
    const double share = log_x && a > 0 ? std::log(x / a) / std::log(b / a) : (x - a) / (b - a);
    return left + share * (right - left);
  }

 private:
  const std::vector<double>& x_;
  std::vector<double> y_;
  std::size_t next_ = 0;  // the first row after x
};

// Returns the q-quantile of sorted values, interpolated between ranks.
double quantile(std::span<const double> sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const double share = at - static_cast<double>(below);
  if (share == 0) return sorted[below];
  if (!std::isfinite(sorted[below]) || !std::isfinite(sorted[below + 1]))
    return share < 0.5 ? sorted[below] : sorted[below + 1];
  return sorted[below] + share * (sorted[below + 1] - sorted[below]);
}

std::vector<double> all_x(std::span<const RunSeries> runs) {
  const bool equal =
      std::all_of(runs.begin(), runs.end(), [&](const RunSeries& r) { return r.x == runs[0].x; });
  if (equal) return runs[0].x;
  std::vector<double> xs, ends;
  for (const RunSeries& run : runs) {
    const auto middle = static_cast<std::ptrdiff_t>(xs.size());
    xs.insert(xs.end(), run.x.begin(), run.x.end());
    std::inplace_merge(xs.begin(), xs.begin() + middle, xs.end());
    ends.push_back(run.x.back());
  }
  std::sort(ends.begin(), ends.end());
  xs.erase(std::upper_bound(xs.begin(), xs.end(), ends[ends.size() / 2]), xs.end());
  xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
  return xs;
}

}  // namespace

Series summarise(std::span<const RunSeries> all, Band band, bool log_x, bool log_y) {
  std::vector<RunSeries> runs;
  for (const RunSeries& run : all)
    if (!run.x.empty()) runs.push_back(run);
  if (runs.empty()) return {};
  if (runs.size() == 1) return {std::move(runs[0].x), std::move(runs[0].y), {}, {}};
  std::vector<Walk> walks;
  for (const RunSeries& run : runs) walks.emplace_back(run, log_y);
  Series series;
  series.x = all_x(runs);
  std::vector<double> values(runs.size());
  for (const double x : series.x) {
    for (std::size_t r = 0; r < runs.size(); ++r) values[r] = walks[r].at(x, log_x);
    std::sort(values.begin(), values.end());
    series.y.push_back(from_axis(quantile(values, 0.5), log_y));
    if (band == Band::kNone) continue;
    const double margin = band == Band::kQuartiles ? 0.25 : 0;
    series.low.push_back(from_axis(quantile(values, margin), log_y));
    series.high.push_back(from_axis(quantile(values, 1 - margin), log_y));
  }
  return series;
}

}  // namespace gradwire
