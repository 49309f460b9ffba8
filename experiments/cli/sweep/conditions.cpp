#include "experiments/cli/sweep/conditions.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/config_error.h"
#include "base/text_lines.h"
#include "base/value.h"
#include "config/renamed_keys.h"

namespace gradwire {
namespace {

constexpr const char* kKey = "sweep.where";
constexpr std::string_view kOr = " or ";

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const std::string* find(const Settings& run, std::string_view key) {
  for (const auto& [path, text] : run)
    if (path == key) return &text;
  return nullptr;
}

// Returns whether `text` looks like the path of a key, not like a value.
bool is_path(std::string_view text) {
  return text.find('.') != text.npos && !number_of(text) && text.find_first_of("/: *\"") == text.npos;
}

}  // namespace

Condition::Condition(std::string_view text) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(kOr, at), text.size());
    any_of_.push_back(parse_comparison(trim(text.substr(at, end - at))));
    at = end == text.size() ? end + 1 : end + kOr.size();
  }
}

Condition::Comparison Condition::parse_comparison(std::string_view text) {
  constexpr std::pair<std::string_view, Op> kOps[] = {{"!=", Op::kNotEqual}, {"<=", Op::kAtMost},
                                                      {">=", Op::kAtLeast},  {"=", Op::kEqual},
                                                      {"<", Op::kLess},      {">", Op::kMore}};
  const std::size_t at = text.find_first_of("!<>=");
  for (const auto& [sign, op] : kOps) {
    if (at == text.npos || text.substr(at, sign.size()) != sign) continue;
    const std::string left(trim(text.substr(0, at)));
    const std::string right(canonical_text(trim(text.substr(at + sign.size()))));
    const bool is_order = op != Op::kEqual && op != Op::kNotEqual;
    const bool may_be_ordered = is_path(right) || number_of(right);
    if (left.empty() || right.empty() || right.front() == '=' || (is_order && !may_be_ordered)) break;
    return {left, right, op};
  }
  throw ConfigError(kKey, "'" + std::string(text) +
                              "': write KEY = VALUE, or !=, <, <=, >, >= with a number or another key, as in "
                              "\"algorithm.K <= 10 or algorithm.name = scaffold\"");
}

std::vector<std::string> Condition::use_current_names() {
  std::vector<std::string> warnings;
  const auto take = [&](std::string& path, Value& value) {
    for (std::string& warning : gradwire::use_current_names(path, value))
      warnings.push_back(std::move(warning));
  };
  for (Comparison& c : any_of_) {
    Value right = c.right, none;
    take(c.left, right);
    c.right = std::get<std::string>(right);
    if (is_path(c.right)) take(c.right, none);
  }
  return warnings;
}

bool Condition::holds(const Settings& run) const {
  return std::any_of(any_of_.begin(), any_of_.end(), [&](const Comparison& c) { return holds(c, run); });
}

bool Condition::is_broken_by(const Settings& some) const {
  return std::none_of(any_of_.begin(), any_of_.end(), [&](const Comparison& c) {
    return holds(c, some) || (is_path(c.right) && find(some, c.right) == nullptr);
  });
}

bool Condition::holds(const Comparison& c, const Settings& run) {
  const std::string* const left = find(run, c.left);
  if (left == nullptr) return true;
  const std::string* const other = find(run, c.right);
  const std::string& right = other != nullptr ? *other : c.right;
  const auto a = number_of(*left), b = number_of(right);
  if (c.op == Op::kEqual || c.op == Op::kNotEqual) {
    const bool equal = a && b ? *a == *b : *left == right;
    return equal == (c.op == Op::kEqual);
  }
  if (!a || !b) return true;
  switch (c.op) {
    case Op::kLess: return *a < *b;
    case Op::kAtMost: return *a <= *b;
    case Op::kMore: return *a > *b;
    default: return *a >= *b;
  }
}

std::vector<std::string> Condition::keys() const {
  std::vector<std::string> keys;
  for (const Comparison& c : any_of_) {
    keys.push_back(c.left);
    if (is_path(c.right)) keys.push_back(c.right);
  }
  return keys;
}

}  // namespace gradwire
