// Range and ticks of an axis.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gradwire {

struct Tick {
  double value = 0;
  std::string label;  // "^{...}" is raised; a minor tick has no label
};

class Axis {
 public:
  // Returns an axis that covers all drawable `values`: finite ones, and on a logarithmic axis those above
  // 1e-300. It has at most `at_most` labelled ticks.
  static Axis cover(std::span<const double> values, bool logarithmic, std::size_t at_most);

  bool logarithmic() const { return log_; }
  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<Tick>& ticks() const { return ticks_; }
  // Returns the exponent of the labels, which are multiples of 10^exponent(). Unless it is 0, draw "x 10^6"
  // at the end of the axis.
  int exponent() const { return exponent_; }

  bool can_draw(double value) const;
  // Returns the position of a value: 0 at low(), 1 at high(). REQUIRES: can_draw(value).
  double place(double value) const;
  // Returns the value at a position, the inverse of place().
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
