#include "algorithms/support/params.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "algorithms/support/sampling.h"
#include "base/config_error.h"
#include "base/nearest.h"

namespace gradwire {
namespace {

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

void read_parameter(std::string_view text, const std::string& key, StepSize& out) {
  constexpr std::string_view kTheory = "theory";
  out = {};
  std::optional<double> value;
  if (text.starts_with(kTheory)) {
    const std::string_view rest = text.substr(kTheory.size());
    if (rest.empty()) return;
    if (rest.starts_with('*')) value = number(rest.substr(1));
    if (!value || !(*value > 0))
      throw ConfigError(
          key, "cannot read " + quoted(text) + "; write \"theory\", \"theory*8\" or a positive number");
    out.factor = *value;
    return;
  }
  value = number(text);
  if (!value || !(*value > 0))
    throw ConfigError(key,
                      quoted(text) + " is no step size; write \"theory\", \"theory*8\" or a positive number");
  out.value = *value;
}

void read_parameter(std::string_view text, const std::string& key, double& out) {
  const auto value = number(text);
  if (!value) throw ConfigError(key, quoted(text) + " is not a finite number");
  out = *value;
}

void read_parameter(std::string_view text, const std::string& key, std::optional<double>& out) {
  out.reset();
  if (text == "theory") return;
  double value = 0;
  read_parameter(text, key, value);
  out = value;
}

void read_parameter(std::string_view text, const std::string& key, PlConstant& out) {
  out = {};
  if (text == "none") return;
  out.asked = true;
  if (text == "theory") return;
  out.value = number(text);
  if (!out.value || !(*out.value > 0))
    throw ConfigError(key,
                      quoted(text) + " is no PL constant; write \"none\", \"theory\" or a positive number");
}

void read_parameter(std::string_view text, const std::string& key, std::uint32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size())
    throw ConfigError(key, quoted(text) + " is not a count (0, 1, 2, ...)");
}

void read_parameter(std::string_view text, const std::string&, std::string& out) { out = text; }

void read_parameter(std::string_view text, const std::string& key, std::vector<double>& out) {
  out.clear();
  if (text == "theory") return;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    out.push_back(0);
    read_parameter(text.substr(0, space), key, out.back());
    text = space == std::string_view::npos ? std::string_view{} : text.substr(space + 1);
  }
}

std::uint32_t read_choice(std::string_view text, const std::string& key,
                          std::span<const std::string_view> words) {
  for (std::uint32_t k = 0; k < words.size(); ++k)
    if (words[k] == text) return k;
  throw ConfigError(key, "unknown word " + quoted(text) + suggest(text, {words.begin(), words.end()}));
}

std::string write_parameter(double value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
std::string write_parameter(const StepSize& value) {
  if (value.value) return write_parameter(*value.value);
  return value.factor == 1 ? "theory" : "theory*" + write_parameter(value.factor);
}
std::string write_parameter(const PlConstant& value) {
  return value.asked ? write_parameter(value.value) : "none";
}
std::string write_parameter(const std::optional<double>& value) {
  return value ? write_parameter(*value) : "theory";
}
std::string write_parameter(std::uint32_t value) { return std::to_string(value); }
std::string write_parameter(const std::string& value) { return value; }
std::string write_parameter(const std::vector<double>& value) {
  if (value.empty()) return "theory";
  std::string text;
  for (const double v : value) text += (text.empty() ? "" : " ") + write_parameter(v);
  return text;
}

void check_probability(double p, std::string_view name) {
  if (!(p > 0 && p <= 1))
    throw ConfigError("algorithm." + std::string(name), "a probability above 0 and at most 1 is needed");
}

void check_positive(double value, std::string_view name) {
  if (!(value > 0)) throw ConfigError("algorithm." + std::string(name), "must be positive");
}

void Assumptions::at_most(std::string_view name, double value, double most, std::string_view formula) const {
  constexpr double kRounding = 1e-9;
  const bool looks_only = theory_.needed != nullptr;  // the constants are made up: needed_constants()
  if (looks_only || value <= most * (1 + kRounding)) return;
  const std::string key(name);
  const std::string what = key + " = " + write_parameter(value) + " is above " + std::string(formula) +
                           " = " + write_parameter(most);
  if (from_theory_)
    throw ConfigError("algorithm." + key, what + ", which the theorem behind the step size excludes; leave " +
                                              key + " to theory, or give step_size a number");
  warnings_.push_back(method_ + ": " + what + "; no theorem covers this run");
}

void Assumptions::convexity(std::string_view name, double mu) const {
  const Smoothness* s = theory_.smoothness;
  if (s != nullptr && s->exact && !s->estimated)
    at_most(name, mu, s->mu, "the strong convexity of the problem");
}

Quality counted_as(const Quality& q, double larger_omega) {
  constexpr double kRounding = 1e-9;
  if (q.omega == 0 || larger_omega <= q.omega + kRounding * (1 + q.omega)) return q;
  Quality counted = q;
  counted.A *= larger_omega / q.omega;
  counted.omega = larger_omega;
  return counted;
}

std::uint32_t replies_of(const Theory& theory) {
  const std::uint32_t asked = cohort_size(theory.n, theory.participation);
  return std::clamp<std::uint32_t>(static_cast<std::uint32_t>(ceil_share(theory.quorum, asked)), 1, asked);
}

double need_convexity(const std::optional<double>& given, const Theory& theory, std::string_view name) {
  const std::string key = "algorithm." + std::string(name);
  if (given) {
    check_positive(*given, name);
    return *given;
  }
  if (theory.needed != nullptr && theory.needed->convexity.empty()) theory.needed->convexity = key;
  const double mu = theory.smoothness == nullptr ? 0 : theory.smoothness->mu;
  if (!(mu > 0))
    throw ConfigError(key,
                      "this problem is not known to be strongly convex, so theory has no value; give a "
                      "number, or use regularizer = \"l2\"");
  return mu;
}

double PlConstant::resolve(const Theory& theory) {
  if (!asked) return 0;
  value = need_convexity(value, theory, "mu");
  const Smoothness* s = theory.needed == nullptr ? theory.smoothness : nullptr;
  // Tolerates rounding: quotients of the same numbers may differ in their last bits. An estimated L is only a
  // lower bound.
  constexpr double kRounding = 1e-9;
  if (s != nullptr && !s->estimated && *value > s->L * (1 + kRounding))
    throw ConfigError("algorithm.mu", write_parameter(*value) +
                                          " is above the smoothness constant L = " + write_parameter(s->L) +
                                          ", which no PL constant is; give a smaller one");
  return *value;
}

const Smoothness& need_smoothness(const Theory& theory, const std::string& key) {
  if (theory.needed != nullptr && theory.needed->smoothness.empty()) theory.needed->smoothness = key;
  if (theory.smoothness == nullptr)
    throw ConfigError(key,
                      "this problem has no closed-form smoothness constants, and only `gradwire run`, which "
                      "has all data at hand, can estimate them; give a number");
  return *theory.smoothness;
}

}  // namespace gradwire
