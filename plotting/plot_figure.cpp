#include "plotting/plot_figure.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace gradwire {
namespace {

// Ratio of the largest to the smallest y above which the axis becomes logarithmic, if all y are positive.
constexpr double kLogRatioY = 20;
// Ratio of the last x of the runs above which only a logarithmic axis can show them all.
constexpr double kLogRatioX = 6;
constexpr std::size_t kFewSeeds = 3;  // too few for quartiles
constexpr std::size_t kMostInARow = 3;

template <class Visit>
void each_y(std::span<const RunSeries> series, const Visit& visit) {
  for (const RunSeries& s : series)
    for (const double y : s.y) visit(y);
}

double largest_y(std::span<const RunSeries> series) {
  double high = 0;
  each_y(series, [&](double v) { high = std::isfinite(v) ? std::max(high, v) : high; });
  return high;
}

// Returns true if the ends of the runs are so far apart that the shortest run would vanish at the left edge.
bool wants_log_x(std::span<const RunSeries> series) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const RunSeries& s : series) {
    if (s.x.empty()) continue;
    if (!(s.x.back() > 0)) return false;
    low = std::min(low, s.x.back());
    high = std::max(high, s.x.back());
  }
  return high > kLogRatioX * low;
}

bool wants_log_y(std::span<const RunSeries> series, const PlotColumn& y) {
  if (y.name == "accuracy") return false;
  if (y.name == "grad_norm_sq" || y.gap) return largest_y(series) > 0;
  double low = std::numeric_limits<double>::infinity();
  bool positive = true;
  // A Lyapunov function that has fallen to zero is a difference of rounded numbers.
  const double nothing = y.bound.empty() ? 0 : 1e-12 * largest_y(series);
  each_y(series, [&](double v) {
    if (!std::isfinite(v) || (v <= 0 && -v < nothing)) return;
    positive = positive && v > 0;
    low = std::min(low, v);
  });
  return positive && largest_y(series) > kLogRatioY * low;
}

struct ByteUnit {
  double size;
  std::string_view name;
};
ByteUnit byte_unit(double most) {
  constexpr std::array<ByteUnit, 4> kUnits = {{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}}};
  for (const ByteUnit& unit : kUnits)
    if (most >= unit.size) return unit;
  return {1, "bytes"};
}

void put_unit(std::string& label, std::string_view unit) {
  if (const std::size_t at = label.find("{}"); at != std::string::npos) label.replace(at, 2, unit);
}

// Returns the sum of the columns in a row, or NaN if the file is older than the column.
double sum_of(const PlotRun& run, const PlotColumn& column, std::size_t row) {
  double sum = 0;
  for (const std::string& name : column.csv) {
    const std::vector<double>* const values = run.metrics.column(name);
    sum += values != nullptr ? (*values)[row] : std::numeric_limits<double>::quiet_NaN();
  }
  return sum;
}

// Returns true if the row did not measure the gradient norm. In a run that diverged, both the norm and the
// loss are NaN.
bool lacks_gradient(const PlotRun& run, const PlotColumn& y, std::size_t row) {
  const std::vector<double>* const loss = run.metrics.column("loss");
  return y.csv.front() == "grad_norm_sq" && loss != nullptr && std::isfinite((*loss)[row]);
}

// Returns the rows that have a number, not yet divided by units. Where x decreases, as clocks can, a row gets
// the largest x so far.
RunSeries series_of(const PlotRun& run, const PlotColumn& x, const PlotColumn& y) {
  RunSeries series;
  const std::size_t rows = run.metrics.rows;
  series.x.reserve(rows);
  series.y.reserve(rows);
  double last = -std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < rows; ++k) {
    const double at = sum_of(run, x, k);
    double value = sum_of(run, y, k);
    if (!std::isfinite(at)) continue;
    if (std::isnan(value) && (y.may_lack() || lacks_gradient(run, y, k))) continue;
    if (y.gap && !std::isnan(value)) value = std::max(0.0, value - run.f_star.value_or(0));
    last = std::max(last, at);
    series.x.push_back(last);
    series.y.push_back(value);
  }
  return series;
}

void divide(std::vector<double>& values, double unit) {
  if (unit == 1) return;
  for (double& v : values) v /= unit;
}

bool is_in(const Figure& figure, const PlotRun& run, const std::string& value) {
  return figure.by.empty() || value_of_key(run.keys, figure.by) == value;
}

// Makes a panel. `value` is the panel's value of the key PlotKeys::by.
PlotPanel make_panel(const Figure& figure, const PlotAxes& axes, const std::string& value) {
  std::vector<RunSeries> series;
  for (const PlotRun& run : figure.runs)
    series.push_back(is_in(figure, run, value) ? series_of(run, axes.x, axes.y) : RunSeries{});
  PlotPanel panel{
      axes.x, axes.y, value,        "",           wants_log_x(series), wants_log_y(series, axes.y),
      1,      1,      axes.x.label, axes.y.label, axes.x.tex,          axes.y.tex,
      {},     {}};
  for (const PlotRun& run : figure.runs)
    if (!figure.by.empty() && is_in(figure, run, value)) panel.title = spell_key(run.keys, figure.by);
  if (axes.x.bytes) {
    double most = 0;
    for (const RunSeries& s : series) most = s.x.empty() ? most : std::max(most, s.x.back());
    const ByteUnit unit = byte_unit(most);
    panel.x_unit = unit.size;
    put_unit(panel.x_label, unit.name);
    put_unit(panel.x_tex, unit.name);
  }
  if (axes.y.name == "accuracy") panel.y_unit = 0.01;
  for (RunSeries& s : series) {
    divide(s.x, panel.x_unit);
    divide(s.y, panel.y_unit);
  }
  for (const PlotCurve& curve : figure.curves) {
    std::vector<RunSeries> own;
    for (const std::size_t r : curve.runs) own.push_back(std::move(series[r]));
    panel.series.push_back(summarise(own, figure.band, panel.log_x, panel.log_y));
    if (axes.y.bound.empty()) continue;
    std::vector<RunSeries> bounds;
    for (const std::size_t r : curve.runs) {
      if (!is_in(figure, figure.runs[r], value)) continue;
      bounds.push_back(series_of(figure.runs[r], axes.x, other_column(axes.y.bound)));
      divide(bounds.back().x, panel.x_unit);
    }
    panel.bounds.push_back(summarise(bounds, Band::kNone, panel.log_x, panel.log_y));
  }
  return panel;
}

// Returns the number of rows with this column.
std::ptrdiff_t count(const PlotRun& run, const std::string& csv) {
  const std::vector<double>* const values = run.metrics.column(csv);
  if (values == nullptr) return 0;
  return std::count_if(values->begin(), values->end(), [](double v) { return !std::isnan(v); });
}
bool has(const PlotRun& run, const std::string& csv) { return count(run, csv) > 0; }

// Returns the smallest and the largest number of runs of a curve in a panel.
std::pair<std::size_t, std::size_t> seeds_of(const Figure& figure, std::span<const std::string> values) {
  std::size_t fewest = figure.runs.size(), most = 1;
  for (const PlotCurve& curve : figure.curves)
    for (const std::string& value : values) {
      const auto count =
          static_cast<std::size_t>(std::count_if(curve.runs.begin(), curve.runs.end(), [&](std::size_t r) {
            return is_in(figure, figure.runs[r], value);
          }));
      if (count == 0) continue;
      fewest = std::min(fewest, count);
      most = std::max(most, count);
    }
  return {fewest, most};
}

std::string note_of(std::size_t fewest, std::size_t most, Band band) {
  if (most == 1) return "";
  const std::string seeds =
      (fewest == most ? "" : std::to_string(fewest) + " to ") + std::to_string(most) + " seeds";
  switch (band) {
    case Band::kNone: return "line: median of " + seeds;
    case Band::kQuartiles: return "line: median of " + seeds + ", band: quartiles";
    case Band::kRange: return "line: median of " + seeds + ", band: smallest to largest";
  }
  return "";
}

// Returns `by`, and the keys that differ among the runs but have one value for each value of `by`. Examples
// are the number of features of a data set, or the parameters of an algorithm. A key that a run lacks counts
// as empty.
std::vector<std::string> follow(std::span<const PlotRun> runs, const std::string& by) {
  std::map<std::string, std::map<std::string, std::set<std::string>>> values;  // by key and value of `by`
  std::map<std::string, std::set<std::string>> all;
  for (const PlotRun& run : runs)
    for (const auto& [key, value] : run.keys) values[key];
  for (const PlotRun& run : runs)
    for (auto& [key, of] : values) {
      const std::string value = value_of_key(run.keys, key);
      of[value_of_key(run.keys, by)].insert(value);
      all[key].insert(value);
    }
  std::vector<std::string> keys;
  for (const auto& [key, of] : values)
    if (key != "name" && key != "seed" && (key == by || all[key].size() > 1) &&
        std::all_of(of.begin(), of.end(), [](const auto& each) { return each.second.size() == 1; }))
      keys.push_back(key);
  return keys;
}

// Returns the number of columns. Panels of one value stay in one row if they fit.
std::size_t columns_for(std::size_t axes, std::size_t values) {
  if (axes > 1 && values > 1 && axes <= kMostInARow) return axes;
  const std::size_t count = axes * values;
  return count == 4 ? 2 : std::clamp<std::size_t>(count, 1, kMostInARow);
}

}  // namespace

std::vector<PlotAxes> usual_axes(std::span<const PlotRun> runs, const PlotColumn* x) {
  const auto y_column = [](std::string_view name) { return *find_column(y_columns(), name); };
  const auto x_or = [&](std::string_view name) {
    return x != nullptr ? *x : *find_column(x_columns(), name);
  };
  const auto all_have = [&](const char* csv) {
    return std::all_of(runs.begin(), runs.end(), [&](const PlotRun& run) { return has(run, csv); });
  };
  const PlotColumn rounds = *find_column(x_columns(), "rounds");
  // A server measures the norm in the first and the last row alone, unless the experiment wants more.
  const bool has_few_norms = std::all_of(runs.begin(), runs.end(), [](const PlotRun& run) {
    return count(run, "grad_norm_sq") <= 2 && count(run, "loss") > 2;
  });
  std::vector<PlotAxes> axes = {{x_or("bits"), y_column(has_few_norms ? "loss" : "grad_norm_sq")}};
  if (all_have("accuracy")) axes = {{x_or("bytes"), y_column("accuracy")}, {rounds, y_column("loss")}};
  if (all_have("lyapunov")) axes.push_back({rounds, y_column("lyapunov")});
  return axes;
}

std::vector<std::string> values_of_key(std::span<const PlotRun> runs, const std::string& key) {
  std::vector<std::string> values;
  for (const PlotRun& run : runs) values.push_back(value_of_key(run.keys, key));
  const auto number = [](const std::string& value) {
    double found = 0;
    const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), found);
    const bool whole = error == std::errc() && rest == value.data() + value.size();
    return whole ? found : std::numeric_limits<double>::infinity();
  };
  const auto before = [&](const std::string& a, const std::string& b) {
    const double left = number(a), right = number(b);
    return left != right ? left < right : a < b;
  };
  std::sort(values.begin(), values.end(), before);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

Figure make_figure(std::vector<PlotRun> runs, std::span<const PlotAxes> axes, std::optional<Band> band,
                   const PlotKeys& keys) {
  Figure figure;
  figure.runs = std::move(runs);
  figure.by = keys.by;
  std::vector<std::string> values = {""}, aside = keys.aside;
  if (!keys.by.empty()) {
    values = values_of_key(figure.runs, keys.by);
    for (std::string& key : follow(figure.runs, keys.by)) aside.push_back(std::move(key));
  }
  figure.curves = make_curves(figure.runs, aside);
  const auto [fewest, most] = seeds_of(figure, values);
  figure.band = band.value_or(most > kFewSeeds ? Band::kQuartiles : Band::kRange);
  figure.note = note_of(fewest, most, figure.band);
  for (const std::string& value : values)
    for (const PlotAxes& a : axes) figure.panels.push_back(make_panel(figure, a, value));
  figure.columns = columns_for(axes.size(), values.size());
  if (std::any_of(axes.begin(), axes.end(), [](const PlotAxes& a) { return !a.y.bound.empty(); }))
    figure.note += std::string(figure.note.empty() ? "" : "; ") + "thin and dashed: the bound of the theorem";
  return figure;
}

double highest_shown(const PlotPanel& panel) {
  constexpr double kDiverged = 1e4;  // times the largest start
  double start = 0;
  for (const Series& s : panel.series)
    if (!s.y.empty() && std::isfinite(s.y.front())) start = std::max(start, s.y.front());
  return panel.log_y && start > 0 ? kDiverged * start : INFINITY;
}

void mark_diverged(Figure& figure) {
  for (std::size_t c = 0; c < figure.curves.size(); ++c) {
    const bool diverged = std::ranges::any_of(figure.panels, [&](const PlotPanel& panel) {
      const std::vector<double>& y = panel.series[c].y;
      return !y.empty() && !(y.back() <= highest_shown(panel));
    });
    if (diverged) figure.curves[c].label += " (diverged)";
  }
}

CurveStyle curve_style(std::size_t curve) {
  // The colours are those of Okabe and Ito (jfly.uni-koeln.de/color) without yellow, ordered so that
  // neighbours differ in brightness. The lengths of the three lists are coprime, so a style repeats only
  // after 280 curves.
  constexpr std::array<std::string_view, 7> kColors = {"#0072b2", "#e69f00", "#000000", "#d55e00",
                                                       "#56b4e9", "#009e73", "#cc79a7"};
  constexpr std::array<std::string_view, 5> kDashes = {"", "6 2.5", "7 2 1.5 2", "1.8 2", "10 3"};
  constexpr std::array<std::string_view, 8> kMarkers = {"o", "s", "^", "D", "v", "P", "X", "*"};
  return {kColors[curve % kColors.size()], kDashes[curve % kDashes.size()],
          kMarkers[curve % kMarkers.size()]};
}

}  // namespace gradwire
