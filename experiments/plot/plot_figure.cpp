#include "experiments/plot/plot_figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace gradwire {
namespace {

// An axis is logarithmic from this ratio of the largest to the smallest number on, where a logarithm makes
// sense.
constexpr double kLogRatioY = 20;
// Runs whose last x differ by more are told apart only on a logarithmic axis.
constexpr double kLogRatioX = 6;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

constexpr std::array<PlotColumn, 7> kX = {{
    {"bits", "bits_up", "communicated bits per client (uplink)", false,
     [](const RoundRecord& r) { return r.bits_up; }},
    {"paper_bits", "bits_up_paper", "bits per client as papers count (uplink)", false,
     [](const RoundRecord& r) { return r.bits_up_paper; }},
    {"rounds", "round", "rounds", false, [](const RoundRecord& r) { return static_cast<double>(r.round); }},
    {"bytes", "bytes_up", "sent by all clients ({})", true,
     [](const RoundRecord& r) { return static_cast<double>(r.bytes_up); }},
    {"grad_calls", "grad_calls", "gradients of samples per client", false,
     [](const RoundRecord& r) { return r.grad_calls; }},
    {"seconds", "seconds", "time (s)", false, [](const RoundRecord& r) { return r.seconds; }},
    {"sim_seconds", "sim_seconds", "simulated time (s)", false,
     [](const RoundRecord& r) { return r.sim_seconds.value_or(kNone); }},
}};

constexpr std::array<PlotColumn, 3> kY = {{
    {"grad_norm_sq", "grad_norm_sq", "‖∇f(x)‖²", false, [](const RoundRecord& r) { return r.grad_norm_sq; }},
    {"loss", "loss", "loss f(x)", false, [](const RoundRecord& r) { return r.loss; }},
    {"accuracy", "accuracy", "test accuracy (%)", false,
     [](const RoundRecord& r) { return r.accuracy.value_or(kNone); }},
}};

template <class Visit>
void each_value(std::span<const PlotCurve> curves, const PlotColumn& column, const Visit& visit) {
  for (const PlotCurve& curve : curves)
    for (const RoundRecord& r : curve.records) visit(column.get(r));
}

double largest(std::span<const PlotCurve> curves, const PlotColumn& column) {
  double high = 0;
  each_value(curves, column, [&](double v) { high = std::isfinite(v) ? std::max(high, v) : high; });
  return high;
}

// True when the ends of the curves lie so far apart that the shortest would be a stroke at the left edge.
bool wants_log_x(std::span<const PlotCurve> curves, const PlotColumn& x) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const PlotCurve& curve : curves) {
    if (curve.records.empty()) continue;
    const double end = x.get(curve.records.back());
    if (!(end > 0)) return false;
    low = std::min(low, end);
    high = std::max(high, end);
  }
  return high > kLogRatioX * low;
}

bool wants_log_y(std::span<const PlotCurve> curves, const PlotColumn& y) {
  if (y.name == "accuracy") return false;
  if (y.name == "grad_norm_sq") return largest(curves, y) > 0;
  double low = std::numeric_limits<double>::infinity();
  bool positive = true;
  each_value(curves, y, [&](double v) {
    if (!std::isfinite(v)) return;
    positive = positive && v > 0;
    low = std::min(low, v);
  });
  return positive && largest(curves, y) > kLogRatioY * low;
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

bool have_accuracy(std::span<const PlotCurve> curves) {
  return std::all_of(curves.begin(), curves.end(), [](const PlotCurve& curve) {
    return std::any_of(curve.records.begin(), curve.records.end(),
                       [](const RoundRecord& r) { return r.accuracy.has_value(); });
  });
}

}  // namespace

std::span<const PlotColumn> x_columns() { return kX; }
std::span<const PlotColumn> y_columns() { return kY; }

const PlotColumn* find_column(std::span<const PlotColumn> columns, std::string_view name) {
  const auto at =
      std::find_if(columns.begin(), columns.end(), [&](const PlotColumn& c) { return c.name == name; });
  return at == columns.end() ? nullptr : &*at;
}

PlotPanel make_panel(std::span<const PlotCurve> curves, const PlotColumn& x, const PlotColumn& y) {
  PlotPanel panel{&x, &y, wants_log_x(curves, x), wants_log_y(curves, y),
                  1,  1,  std::string(x.label),   std::string(y.label)};
  if (x.bytes) {
    const ByteUnit unit = byte_unit(largest(curves, x));
    panel.x_unit = unit.size;
    panel.x_label.replace(panel.x_label.find("{}"), 2, unit.name);
  }
  if (y.name == "accuracy") panel.y_unit = 0.01;
  return panel;
}

Figure make_figure(std::vector<PlotCurve> curves, const PlotColumn* x, const PlotColumn* y) {
  Figure figure{std::move(curves), {}};
  const auto column = [](std::span<const PlotColumn> columns, std::string_view name) {
    return find_column(columns, name);
  };
  const bool classifies = y == nullptr && have_accuracy(figure.curves);
  if (classifies) {
    figure.panels.push_back(
        make_panel(figure.curves, *(x != nullptr ? x : column(kX, "bytes")), *column(kY, "accuracy")));
    figure.panels.push_back(make_panel(figure.curves, *column(kX, "rounds"), *column(kY, "loss")));
  } else {
    figure.panels.push_back(make_panel(figure.curves, *(x != nullptr ? x : column(kX, "bits")),
                                       *(y != nullptr ? y : column(kY, "grad_norm_sq"))));
  }
  return figure;
}

CurveStyle curve_style(std::size_t curve) {
  // Neighbours differ in brightness, dashes and marker; the three lists have different lengths, so pairs
  // repeat late.
  constexpr std::array<std::string_view, 8> kColors = {"#12355b", "#e36414", "#2a9d5c", "#b5179e",
                                                       "#0091ad", "#7f1d1d", "#8d99ae", "#5f4bb6"};
  constexpr std::array<std::string_view, 5> kDashes = {"", "6 2.5", "7 2 1.5 2", "1.8 2", "10 3"};
  constexpr std::array<std::string_view, 7> kMarkers = {"o", "s", "^", "D", "v", "P", "X"};
  return {kColors[curve % kColors.size()], kDashes[curve % kDashes.size()],
          kMarkers[curve % kMarkers.size()]};
}

}  // namespace gradwire
