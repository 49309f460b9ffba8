// sweep.where: which runs of a grid are wanted.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace gradwire {

// "algorithm.local_steps > 1 or algorithm.name = scaffold": one of its comparisons must hold. Each compares a
// key with a value or with another key: = and != as texts or numbers, < <= > >= as numbers. A comparison of a
// key that a run does not have holds: it says nothing about that run.
class Condition {
 public:
  // Throws ConfigError("sweep.where").
  explicit Condition(std::string_view text);

  bool holds(const Settings& run) const;
  // Whether these few settings of a run are enough to say that it does not hold.
  bool is_broken_by(const Settings& some) const;
  // The keys that it names; what looks like one, and is none of any run, is a mistake.
  std::vector<std::string> keys() const;

 private:
  enum class Op : std::uint8_t { kEqual, kNotEqual, kLess, kAtMost, kMore, kAtLeast };
  struct Comparison {
    std::string left, right;
    Op op;
  };
  static Comparison parse_comparison(std::string_view text);
  static bool holds(const Comparison& comparison, const Settings& run);

  std::vector<Comparison> any_of_;
};

}  // namespace gradwire
