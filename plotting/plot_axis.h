// The range of an axis and its ticks.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gradwire {

struct Tick {
  double value = 0;
  std::string label;  // "^{...}" is raised; empty: a minor tick
};

class Axis {
 public:
  // Covers all of `values` that can be drawn: finite ones, on a logarithmic axis those above 1e-300.
  // `at_most` bounds the number of labelled ticks.
  static Axis cover(std::span<const double> values, bool logarithmic, std::size_t at_most);

  bool logarithmic() const { return log_; }
  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<Tick>& ticks() const { return ticks_; }
  // Labels are multiples of 10^exponent(): "x 10^6" belongs at the end of the axis unless it is 0.
  int exponent() const { return exponent_; }

  bool can_draw(double value) const;
  // 0 at low(), 1 at high(). REQUIRES: can_draw(value).
  double place(double value) const;
  // What place() puts there.
  double value(double place) const;

 private:
  void add_linear_ticks(std::size_t at_most);
  void add_power_ticks(std::size_t at_most);
  void add_mantissa_ticks(std::size_t at_most);

  bool log_ = false;
  double low_ = 0, high_ = 1;
  int exponent_ = 0;
  std::vector<Tick> ticks_;
};

}  // namespace gradwire
