#include "plotting/plot_axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace gradwire {
namespace {

constexpr double kPadding = 0.03;        // share of the range left free at both ends
constexpr int kMinorStride = 5;          // most decades between labels for which each decade has a tick
constexpr double kSmallestPlain = 1e-2;  // smaller labels need an exponent
constexpr double kLargestPlain = 1e4;
constexpr double kLargest = 1e300;    // larger values come from runs that diverged; widths would overflow
constexpr double kSmallest = 1e-300;  // a logarithmic axis treats smaller numbers as zero
constexpr double kTiny = 1e-9;        // tolerance for ticks at the end of a range

std::string power_label(int exponent) { return "10^{" + std::to_string(exponent) + "}"; }

std::string plain(double value, int decimals) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value == 0 ? 0.0 : value);
  std::string label = text.data();
  // Replace the hyphen by a true minus sign, as wide as a plus.
  if (label.starts_with('-')) label.replace(0, 1, "\u2212");
  return label;
}

// Returns the smallest number that is at least `raw` and is 1, 2 or 5 times a power of ten.
double nice_step(double raw) {
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double mantissa : {1.0, 2.0, 5.0})
    if (mantissa * power >= raw * (1 - kTiny)) return mantissa * power;
  return 10 * power;
}

std::string mantissa_label(int mantissa, int exponent, bool plainly) {
  if (plainly) return plain(mantissa * std::pow(10, exponent), std::max(0, -exponent));
  return (mantissa == 1 ? "" : std::to_string(mantissa) + "\u00b7") + power_label(exponent);
}

}  // namespace

bool Axis::can_draw(double value) const { return std::abs(value) < kLargest && (!log_ || value > kSmallest); }

double Axis::place(double value) const {
  if (!log_) return (value - low_) / (high_ - low_);
  return (std::log10(value) - std::log10(low_)) / (std::log10(high_) - std::log10(low_));
}

double Axis::value(double place) const {
  if (!log_) return low_ + place * (high_ - low_);
  return std::pow(10, std::log10(low_) + place * (std::log10(high_) - std::log10(low_)));
}

Axis Axis::cover(std::span<const double> values, bool logarithmic, std::size_t at_most) {
  Axis axis;
  axis.log_ = logarithmic;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double v : values) {
    if (!axis.can_draw(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (low > high) {  // no value can be drawn
    low = logarithmic ? 1 : 0;
    high = logarithmic ? 10 : 1;
  }
  if (logarithmic) {
    double a = std::log10(low), b = std::log10(high);
    const double pad = b - a > kTiny ? kPadding * (b - a) : 0.5;
    a -= pad, b += pad;
    // Stay inside the range of doubles, so that 10^x is neither 0 nor infinite.
    axis.low_ = std::pow(10, std::max(a, -307.0));
    axis.high_ = std::pow(10, std::min(b, 308.0));
    if (b - a >= 2) {
      axis.add_power_ticks(at_most);
    } else {
      axis.add_mantissa_ticks(at_most);
    }
    return axis;
  }
  if (high - low < kSmallest && std::abs(low) < kSmallest) low = 0, high = 1;
  const double width = high - low;
  const double pad =
      width > kTiny * std::max(std::abs(low), std::abs(high)) ? kPadding * width : 0.1 * std::abs(low);
  axis.low_ = low - pad;
  axis.high_ = high + pad;
  axis.add_linear_ticks(at_most);
  return axis;
}

void Axis::add_linear_ticks(std::size_t at_most) {
  const double step = nice_step((high_ - low_) / static_cast<double>(at_most));
  const double largest = std::max(std::abs(low_), std::abs(high_));
  if (largest >= kLargestPlain * 10 || largest < kSmallestPlain)
    exponent_ = 3 * static_cast<int>(std::floor(std::log10(largest) / 3));
  const double unit = std::pow(10, exponent_);
  const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step / unit) + kTiny)), 0, 15);
  for (double k = std::ceil(low_ / step - kTiny); k * step <= high_ + kTiny * step; ++k)
    ticks_.push_back({k * step, plain(k * step / unit, decimals)});
  // Minor ticks divide steps of 1 and 5 by five, and steps of 2 by four.
  const double mantissa = step / std::pow(10, std::floor(std::log10(step) + kTiny));
  const double parts = mantissa > 1.5 && mantissa < 3 ? 4 : 5;
  for (double k = std::ceil(low_ / step * parts - kTiny); k * step <= (high_ + kTiny * step) * parts; ++k)
    if (std::abs(std::remainder(k, parts)) > 0.5) ticks_.push_back({k * step / parts, ""});
}

void Axis::add_power_ticks(std::size_t at_most) {
  const int first = static_cast<int>(std::ceil(std::log10(low_) - kTiny));
  const int last = static_cast<int>(std::floor(std::log10(high_) + kTiny));
  const int stride = std::max(
      1, static_cast<int>(nice_step(static_cast<double>(last - first + 1) / static_cast<double>(at_most))));
  const bool plainly = first >= -2 && last <= 3;
  for (int e = first - 1; e <= last; ++e) {
    const double power = std::pow(10, e);
    if (e >= first && (stride <= kMinorStride || e % stride == 0))
      ticks_.push_back({power, e % stride != 0 ? "" : mantissa_label(1, e, plainly)});
    if (stride > 1) continue;
    for (int m = 2; m < 10; ++m)
      if (m * power >= low_ && m * power <= high_) ticks_.push_back({m * power, ""});
  }
}

void Axis::add_mantissa_ticks(std::size_t at_most) {
  const int first = static_cast<int>(std::floor(std::log10(low_)));
  const int last = static_cast<int>(std::floor(std::log10(high_)));
  // Choose the finest of the usual selections that gives few enough labels.
  const std::array<std::vector<int>, 5> selections = {
      {{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 4, 6, 8}, {1, 2, 5}, {1, 3}, {1}}};
  const bool plainly = low_ >= kSmallestPlain && high_ < 10 * kLargestPlain;
  const auto inside = [&](double v) { return v >= low_ * (1 - kTiny) && v <= high_ * (1 + kTiny); };
  for (const auto& labelled : selections) {
    ticks_.clear();
    std::size_t count = 0;
    for (int e = first; e <= last; ++e) {
      for (int m = 1; m < 10; ++m) {
        const double value = m * std::pow(10, e);
        if (!inside(value)) continue;
        const bool with_label = std::find(labelled.begin(), labelled.end(), m) != labelled.end();
        count += with_label;
        ticks_.push_back({value, with_label ? mantissa_label(m, e, plainly) : ""});
      }
    }
    if (count <= at_most) break;
  }
  const auto labels =
      std::count_if(ticks_.begin(), ticks_.end(), [](const Tick& t) { return !t.label.empty(); });
  if (labels >= 2) return;
  // A range too narrow for round mantissas gets evenly spaced numbers at their logarithmic positions.
  ticks_.clear();
  add_linear_ticks(std::min<std::size_t>(at_most, 4));
}

}  // namespace gradwire
