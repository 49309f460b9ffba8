#include "algorithms/params.h"

#include <charconv>
#include <cmath>

#include "compressors/config_error.h"
#include "compressors/nearest.h"

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
  double value = 0;
  read_parameter(text, key, value);
  out = value;
}

void read_parameter(std::string_view text, const std::string& key, std::uint32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size())
    throw ConfigError(key, quoted(text) + " is not a count (0, 1, 2, ...)");
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
std::string write_parameter(const std::optional<double>& value) {
  return value ? write_parameter(*value) : "theory";
}
std::string write_parameter(std::uint32_t value) { return std::to_string(value); }

const Smoothness& need_smoothness(const Theory& theory, const std::string& key) {
  if (theory.smoothness == nullptr)
    throw ConfigError(
        key,
        "this problem has no closed-form smoothness constants, so there is no theory step; give a number");
  return *theory.smoothness;
}

}  // namespace gradwire
