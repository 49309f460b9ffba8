#include "algorithms/core/params.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "algorithms/core/sampling.h"
#include "base/config_error.h"

namespace gradwire {
namespace {

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}
std::optional<double> positive(std::string_view text) {
  const auto value = number(text);
  return value && *value > 0 ? value : std::nullopt;
}

constexpr std::string_view kTheory = "theory";

}  // namespace

bool TextCodec<StepSize>::read(std::string_view text, StepSize& out) {
  const bool multiple = text.starts_with("theory*");
  if (text == kTheory) {
    out = {};
    return true;
  }
  const auto value = positive(multiple ? text.substr(kTheory.size() + 1) : text);
  if (!value) return false;
  out = multiple ? StepSize{std::nullopt, *value} : StepSize{*value, 1};
  return true;
}
std::string TextCodec<StepSize>::write(const StepSize& value) {
  if (value.value) return number_text(*value.value);
  return std::string(kTheory) + (value.factor == 1 ? "" : "*" + number_text(value.factor));
}

bool TextCodec<PlConstant>::read(std::string_view text, PlConstant& out) {
  const auto value = positive(text);
  if (!value && text != "none" && text != kTheory) return false;
  out = {text != "none", value};
  return true;
}
std::string TextCodec<PlConstant>::write(const PlConstant& value) {
  return value.asked ? TextCodec<std::optional<double>>::write(value.value) : "none";
}

bool TextCodec<std::optional<double>>::read(std::string_view text, std::optional<double>& out) {
  const auto value = number(text);
  if (!value && text != kTheory) return false;
  out = value;
  return true;
}
std::string TextCodec<std::optional<double>>::write(const std::optional<double>& value) {
  return value ? number_text(*value) : std::string(kTheory);
}

bool TextCodec<std::vector<double>>::read(std::string_view text, std::vector<double>& out) {
  std::vector<double> list;
  while (text != kTheory && !text.empty()) {
    const std::size_t space = text.find(' ');
    const auto value = number(text.substr(0, space));
    if (!value) return false;
    list.push_back(*value);
    text = space == std::string_view::npos ? std::string_view{} : text.substr(space + 1);
  }
  out = std::move(list);
  return true;
}
std::string TextCodec<std::vector<double>>::write(const std::vector<double>& value) {
  std::string text;
  for (const double v : value) text += (text.empty() ? "" : " ") + number_text(v);
  return text.empty() ? std::string(kTheory) : text;
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
  if (value <= most * (1 + kRounding)) return;
  const std::string key(name);
  const std::string what =
      key + " = " + number_text(value) + " is above " + std::string(formula) + " = " + number_text(most);
  if (from_theory_)
    throw ConfigError("algorithm." + key, what + ", which the theorem of the step size excludes; " +
                                              (most > 0 ? "leave " + key + " to theory, or " : "") +
                                              "give step_size a number");
  warnings_.push_back(algorithm_ + ": " + what + "; no theorem covers this run");
}

double Assumptions::convexity(std::string_view name, const std::optional<double>& given) const {
  const Smoothness* s = theory_.smoothness;
  const bool is_known = s != nullptr && s->exact && !s->estimated;
  const std::string advice =
      from_theory_ && is_known ? "give numbers for " + std::string(name) + " and step_size" : "give a number";
  const double mu = need_convexity(given, theory_, name, advice);
  if (is_known) at_most(name, mu, s->mu, "the strong convexity of the problem");
  return mu;
}

CompressorConstants counted_as(const CompressorConstants& q, double larger_omega) {
  constexpr double kRounding = 1e-9;
  if (q.omega == 0 || larger_omega <= q.omega + kRounding * (1 + q.omega)) return q;
  CompressorConstants counted = q;
  counted.A *= larger_omega / q.omega;
  counted.omega = larger_omega;
  return counted;
}

std::uint32_t replies_of(const Theory& theory) {
  const std::uint32_t asked = cohort_size(theory.n, theory.participation);
  return std::clamp<std::uint32_t>(static_cast<std::uint32_t>(ceil_share(theory.quorum, asked)), 1, asked);
}

double need_convexity(const std::optional<double>& given, const Theory& theory, std::string_view name,
                      const std::string& advice) {
  const std::string key = "algorithm." + std::string(name);
  if (given) {
    check_positive(*given, name);
    return *given;
  }
  const double mu = theory.smoothness == nullptr ? 0 : theory.smoothness->mu;
  if (!(mu > 0))
    throw ConfigError(
        key, "this problem is not known to be strongly convex, so theory has no value; " + advice +
                 std::string(
                     theory.smoothness != nullptr && theory.smoothness->convex
                         ? ", or problem.lambda above 0, with regularizer = \"l2\" if the kind has that key"
                         : ""));
  return mu;
}

Lyapunov gap_of_gradient_descent(double gamma, const Theory& theory) {
  const double mu = theory.smoothness == nullptr ? 0 : theory.smoothness->mu;
  return {.gap = 1, .rate = 1 - std::min(1.0, gamma * mu), .is_mean = false};
}
void refuse_monitor(const std::string& why) {
  throw ConfigError("run.monitor", why + "; write monitor = false");
}

const Smoothness& need_to_monitor(const Theory& theory) {
  if (theory.smoothness == nullptr) refuse_monitor("the theorem needs constants of f, which are not known");
  return *theory.smoothness;
}

double PlConstant::resolve(const Theory& theory) {
  if (!asked) return 0;
  value = need_convexity(value, theory, "mu");
  const Smoothness* s = theory.smoothness;
  // Tolerates rounding: quotients of equal numbers may differ in their last bits. An estimated L is only a
  // lower bound.
  constexpr double kRounding = 1e-9;
  if (s != nullptr && !s->estimated && *value > s->L * (1 + kRounding))
    throw ConfigError("algorithm.mu", number_text(*value) +
                                          " is above the smoothness constant L = " + number_text(s->L) +
                                          ", which no PL constant is; give a smaller one");
  return *value;
}

const Smoothness& need_smoothness(const Theory& theory, std::string_view key) {
  if (theory.smoothness == nullptr)
    throw ConfigError(std::string(key),
                      "this problem has no closed-form smoothness constants, and only `gradwire run`, which "
                      "has all data at hand, can estimate them; give a number");
  return *theory.smoothness;
}

}  // namespace gradwire
