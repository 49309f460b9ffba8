// sweep.where: selects runs of a grid.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace gradwire {

// A condition such as "algorithm.local_steps > 1 or algorithm.name = scaffold". It holds if one of its
// comparisons holds. Each compares a key with a value or another key: = and != as texts or numbers, < <= > >=
// as numbers. A comparison of a key that a run does not have holds, because it says nothing about that run.
class Condition {
 public:
  // Throws ConfigError("sweep.where").
  explicit Condition(std::string_view text);

  // Replaces old names of keys and words, and returns the warnings about them (config/renamed_keys.h).
  std::vector<std::string> use_current_names();

  bool holds(const Settings& run) const;
  // Returns whether these settings of a run already imply that the condition does not hold.
  bool is_broken_by(const Settings& some) const;
  // Returns the keys that it names. A name that is not a key of any run is an error of the user.
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
