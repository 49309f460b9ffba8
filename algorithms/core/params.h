// Parameters of an algorithm. One list of fields serves parsing, defaults, --help and the resolved
// experiment.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/core/lyapunov.h"
#include "algorithms/core/spec.h"
#include "algorithms/core/traits.h"
#include "base/field.h"

namespace gradwire {

using Warnings = std::vector<std::string>;

// A step size: a number, or a multiple of the step size that theory gives.
struct StepSize {
  std::optional<double> value;  // set once resolved
  double factor = 1;            // multiple of the theory step

  // Sets the value to factor * theory if it is not a number yet.
  void resolve(double theory) {
    if (!value) value = factor * theory;
  }
};

// One word of a fixed list.
template <class Words>
struct Choice {
  std::uint32_t index = 0;
  Choice() = default;
  explicit Choice(std::uint64_t index) : index(static_cast<std::uint32_t>(index)) {}
  explicit operator std::uint64_t() const { return index; }
  bool is(std::string_view word) const { return Words::words[index] == word; }
  friend std::span<const std::string_view> words_of(Choice) { return Words::words; }
};

// The constant mu of the PL condition ||grad f||^2 >= 2 mu (f - f*), for theorems with a linear rate. "none"
// selects the general theorem's step. "theory" is the problem's strong convexity, which is a PL constant. A
// number gives mu.
struct PlConstant {
  bool asked = false;
  std::optional<double> value;

  // Resolves and returns mu, or 0 for "none". Throws ConfigError if the problem cannot have this PL constant.
  double resolve(const Theory& theory);
  double or_none() const { return asked ? value.value_or(0) : 0; }  // returns mu after resolve(), or 0
};
inline constexpr std::string_view kPlMeaning =
    "constant of the PL condition, for its theorem's step and linear rate: none | theory (the problem's) | a "
    "number";
// Only theory's step and the monitor read the constant.
inline Constraints pl_rules(const StepSize& step) {
  return {.idle_by = idle_if(step.value.has_value(), "step_size"), .monitored = true};
}
// Under the PL condition, a theorem's step is the general one with the error of the gradient estimate counted
// twice, and at most rate/(2 mu). In a round, the error shrinks by the factor 1 - rate. mu = 0 means no PL
// condition.
inline double error_weight(double mu) { return mu > 0 ? 2 : 1; }
inline double pl_step(double step, double rate, double mu) {
  return mu > 0 && rate / (2 * mu) < step ? rate / (2 * mu) : step;
}

// Spelled "theory", "theory*8" or a number.
template <>
struct TextCodec<StepSize> {
  static bool read(std::string_view text, StepSize& out);
  static std::string write(const StepSize& value);
  static constexpr std::string_view expected = "\"theory\", \"theory*8\" or a positive number";
};
template <>
struct TextCodec<PlConstant> {
  static bool read(std::string_view text, PlConstant& out);
  static std::string write(const PlConstant& value);
  static constexpr std::string_view expected = "\"none\", \"theory\" or a positive number";
};
// "theory" is read as no value.
template <>
struct TextCodec<std::optional<double>> {
  static bool read(std::string_view text, std::optional<double>& out);
  static std::string write(const std::optional<double>& value);
  static constexpr std::string_view expected = "\"theory\" or a number";
};
template <>
struct TextCodec<std::vector<double>> {
  static bool read(std::string_view text, std::vector<double>& out);
  static std::string write(const std::vector<double>& value);
  static constexpr std::string_view expected = "\"theory\" or numbers, one space between them";
};

// Returns f(x) − f* of gradient descent as a Lyapunov function. Its rate is 1 − gamma mu, or 1 if f is not
// strongly convex.
Lyapunov gap_of_gradient_descent(double gamma, const Theory& theory);
// Throws a ConfigError for run.monitor. `why` says why no theorem with a Lyapunov function covers the run.
[[noreturn]] void refuse_monitor(const std::string& why);
const Smoothness& need_to_monitor(const Theory& theory);  // throws the same if the constants are unknown

// Throws ConfigError unless p is a probability in (0, 1].
void check_probability(double p, std::string_view name);
void check_positive(double value, std::string_view name);

// The assumptions of a theorem about parameters that the user chose. A violation is a ConfigError if the step
// size comes from theory, and a warning if it is a number.
class Assumptions {
 public:
  Assumptions(std::string_view algorithm, const StepSize& step, const Theory& theory, Warnings& warnings)
      : algorithm_(algorithm), from_theory_(!step.value), theory_(theory), warnings_(warnings) {}

  // Requires value <= most. `formula` spells `most` out: "alpha = 0.5 is above 1/(1 + omega) = 0.2".
  void at_most(std::string_view name, double value, double most, std::string_view formula) const;
  // Returns the given mu, or else the problem's. Requires that it is at most the strong convexity of f, if
  // that is known exactly. Throws ConfigError if neither is known.
  double convexity(std::string_view name, const std::optional<double>& given) const;

 private:
  std::string algorithm_;
  bool from_theory_;
  const Theory& theory_;
  Warnings& warnings_;
};

// Returns q with omega raised to `larger_omega`, for theorems that tie a parameter to omega. A smaller
// parameter belongs to a larger omega. The theorem for the larger omega also covers this compressor.
CompressorConstants counted_as(const CompressorConstants& q, double larger_omega);

// Returns the number of replies that a round uses: those of all sampled clients, or with a quorum the first
// ones.
std::uint32_t replies_of(const Theory& theory);

// Returns mu > 0: the given one, or else the problem's. Throws a ConfigError with `advice` if there is
// neither.
double need_convexity(const std::optional<double>& given, const Theory& theory, std::string_view name,
                      const std::string& advice = "give a number");

// Return L_s and the largest L_ij of single samples, or L_max if they are unknown.
inline double sample_smoothness(const Smoothness& s) { return s.L_s > 0 ? s.L_s : s.L_max(); }
inline double largest_sample_smoothness(const Smoothness& s) {
  return s.L_sample_max > 0 ? s.L_sample_max : s.L_max();
}

// Returns the smoothness constants. Throws a ConfigError that asks for a number as the value of `key` if they
// are unknown.
const Smoothness& need_smoothness(const Theory& theory, std::string_view key);

}  // namespace gradwire
