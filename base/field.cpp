#include "base/field.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/config_error.h"
#include "base/printable.h"
#include "base/suggest.h"

namespace gradwire {
namespace {

constexpr std::size_t kLongestWord = 100;

std::string range_text(const Constraints& r, bool whole, const char* of) {
  const std::string low = number_text(r.low), high = number_text(r.high);
  if (r.high == kNoLimit)
    return r.low_open ? std::string(of) + " above " + low : std::string(of) + ", " + low + " or more";
  if (!whole)
    return std::string(of) + " in " + (r.low_open ? "(" : "[") + low + ", " + high +
           (r.high_open ? ")" : "]");
  return std::string(of) + ", " + std::to_string(static_cast<std::int64_t>(r.low)) + " to " +
         std::to_string(static_cast<std::int64_t>(r.high));
}

// Returns "\"a\", \"b\" or LAST". If `last` is empty, the last of `words` takes its place.
std::string words_text(std::span<const std::string_view> words, const std::string& last = "") {
  std::vector<std::string> items;
  for (const std::string_view word : words) items.push_back('"' + std::string(word) + '"');
  if (!last.empty()) items.push_back(last);
  std::string list;
  for (std::size_t i = 0; i < items.size(); ++i)
    list += (i == 0 ? "" : i + 1 == items.size() ? " or " : ", ") + items[i];
  return list;
}

bool in_range(const Constraints& r, double v) {
  return std::isfinite(v) && (r.low_open ? v > r.low : v >= r.low) &&
         (r.high_open ? v < r.high : v <= r.high);
}
bool in_range(const Constraints& r, std::int64_t v) { return in_range(r, static_cast<double>(v)); }

bool is_one_of(std::span<const std::string_view> words, const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr && std::find(words.begin(), words.end(), *text) != words.end();
}

}  // namespace

void check_printable(const std::string& path, const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return;
  if (has_control_characters(*text))
    throw ConfigError(path, "must not contain control characters: " + describe(value));
}

bool is_nothing(const Value& value) {
  return value == Value(false) || value == Value(std::int64_t{0}) || value == Value(0.0) ||
         value == Value("") || value == Value("none") || value == Value(std::vector<std::int64_t>{});
}

bool Field::takes_any_text() const {
  return std::holds_alternative<std::string*>(member_) && constraints.words.empty() && !constraints.or_number;
}

bool Field::has_text_codec() const { return std::holds_alternative<Own>(member_); }

std::string Field::expected() const {
  if (const auto* own = std::get_if<Own>(&member_)) return std::string(own->expected);
  if (constraints.or_integer)
    return words_text(constraints.words, range_text(constraints, true, "an integer"));
  if (constraints.or_flag) return words_text(constraints.words) + ", true or false";
  if (constraints.or_number) return "a number or a string";
  if (!constraints.words.empty()) return words_text(constraints.words);
  if (std::holds_alternative<bool*>(member_)) return "true or false";
  if (std::holds_alternative<std::string*>(member_)) return "a string";
  if (std::holds_alternative<double*>(member_)) return range_text(constraints, false, "a number");
  if (std::holds_alternative<std::vector<std::uint32_t>*>(member_))
    return "a list of at most " + std::to_string(kMaxListLength) + range_text(constraints, true, " integers");
  return range_text(constraints, true, "an integer");
}

bool Field::fits(const Value& value) const {
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* number = std::get_if<double>(&value);
  const bool text = std::holds_alternative<std::string>(value), flag = std::holds_alternative<bool>(value);
  if (constraints.or_number) return text || integer != nullptr || number != nullptr;
  if (!constraints.words.empty())
    return is_one_of(constraints.words, value) || (constraints.or_flag && flag) ||
           (constraints.or_integer && integer != nullptr && in_range(constraints, *integer)) ||
           fits_unquoted(value);
  if (std::holds_alternative<bool*>(member_)) return flag;
  if (std::holds_alternative<std::string*>(member_)) return text;
  if (std::holds_alternative<double*>(member_)) return number != nullptr && in_range(constraints, *number);
  if (!std::holds_alternative<std::vector<std::uint32_t>*>(member_))
    return integer != nullptr && in_range(constraints, *integer);
  const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
  return list != nullptr && list->size() <= kMaxListLength &&
         std::all_of(list->begin(), list->end(), [&](std::int64_t v) { return in_range(constraints, v); });
}

// Returns true if the value is a flag or number in quotes ("false") that would fit without the quotes.
bool Field::fits_unquoted(const Value& value) const {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || !(constraints.or_integer || constraints.or_flag)) return false;
  const Value bare = value_of(*text);
  return !std::holds_alternative<std::string>(bare) && fits(bare);
}

void Field::refuse(const std::string& path, const Value& value) const {
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr && !constraints.words.empty()) {
    std::vector<std::string> known(constraints.words.begin(), constraints.words.end());
    if (constraints.or_flag) known.insert(known.end(), {"true", "false"});
    if (constraints.or_integer) known.push_back(range_text(constraints, true, "an integer"));
    const RenamedWord& renamed = constraints.renamed_word;
    std::vector<Renamed> old;
    if (!renamed.word.empty()) old.push_back({std::string(renamed.old_word), std::string(renamed.word)});
    throw ConfigError(path, "unknown " + std::string(key) + " '" + text->substr(0, kLongestWord) + "'" +
                                suggest(*text, known, old));
  }
  throw ConfigError(path, std::string(key) + " must be " + expected() + ", not " + describe(value));
}

void Field::set(const std::string& path, const Value& given) const {
  check_printable(path, given);
  if (const auto* own = std::get_if<Own>(&member_)) {
    const bool scalar = !std::holds_alternative<std::vector<std::int64_t>>(given) &&
                        !std::holds_alternative<OtherValue>(given);
    if (!scalar) refuse(path, given);
    if (constraints.check != nullptr) constraints.check(path, text_of(given));
    if (!own->read(text_of(given), own->at)) refuse(path, given);
    return;
  }
  Value value = given;
  if (const auto* integer = std::get_if<std::int64_t>(&given);
      integer != nullptr && std::holds_alternative<double*>(member_))
    value = static_cast<double>(*integer);
  if (!fits(value)) refuse(path, given);
  if (!constraints.words.empty() && !is_one_of(constraints.words, value) && fits_unquoted(value))
    value = value_of(std::get<std::string>(value));
  if (constraints.check != nullptr) constraints.check(path, text_of(value));
  store(value);
}

// Stores the value in the member. REQUIRES: fits(value).
void Field::store(const Value& value) const {
  std::visit(
      [&]<class M>(const M& at) {
        if constexpr (std::is_same_v<M, Whole>) {
          const auto* word = std::get_if<std::string>(&value);
          at.set(at.at,
                 static_cast<std::uint64_t>(
                     word == nullptr ? std::get<std::int64_t>(value)
                                     : std::find(constraints.words.begin(), constraints.words.end(), *word) -
                                           constraints.words.begin()));
        } else if constexpr (std::is_same_v<M, std::string*>) {
          *at = text_of(value);
        } else if constexpr (std::is_same_v<M, std::vector<std::uint32_t>*>) {
          const auto& list = std::get<std::vector<std::int64_t>>(value);
          at->assign(list.begin(), list.end());
        } else if constexpr (std::is_same_v<M, double*>) {
          *at = std::get<double>(value) + 0.0;  // turns -0.0 into 0.0, because both have the text 0
        } else if constexpr (std::is_same_v<M, bool*>) {
          *at = std::get<bool>(value);
        }
      },
      member_);
}

Value Field::get(Names names) const {
  const RenamedWord& renamed = constraints.renamed_word;
  if (names == Names::kOld && !renamed.word.empty() && get() == Value(std::string(renamed.word)))
    return std::string(renamed.old_word);
  return std::visit(
      [&]<class M>(const M& at) -> Value {
        if constexpr (std::is_same_v<M, Whole>) {
          const std::uint64_t number = at.get(at.at);
          if (number < constraints.words.size()) return std::string(constraints.words[number]);
          return static_cast<std::int64_t>(number);  // from 2^63 it is negative, which no field accepts
        } else if constexpr (std::is_same_v<M, std::string*>) {
          return takes_any_text() ? Value(*at) : value_of(*at);
        } else if constexpr (std::is_same_v<M, std::vector<std::uint32_t>*>) {
          return std::vector<std::int64_t>(at->begin(), at->end());
        } else if constexpr (std::is_same_v<M, Own>) {
          return value_of(at.write(at.at));
        } else {
          return *at;
        }
      },
      member_);
}

std::string Field::text(Names names) const {
  if (const auto* own = std::get_if<Own>(&member_)) return own->write(own->at);
  const Value value = get(names);
  const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
  if (list == nullptr) return text_of(value);
  std::string text;
  for (const std::int64_t v : *list) text += (text.empty() ? "" : " ") + std::to_string(v);
  return text;
}

void Field::from_text(const std::string& path, std::string_view text) const {
  if (!text.empty() && text == constraints.renamed_word.old_word) text = constraints.renamed_word.word;
  const bool is_word = std::find(constraints.words.begin(), constraints.words.end(), text) !=
                       constraints.words.end();  // some settings have the word "1"
  if (is_word || takes_any_text() || has_text_codec()) return set(path, std::string(text));
  if (!std::holds_alternative<std::vector<std::uint32_t>*>(member_)) return set(path, value_of(text));
  std::vector<std::int64_t> list;
  const char *at = text.data(), *const end = at + text.size();
  while (at != end) {
    std::int64_t v = 0;
    const auto [rest, error] = std::from_chars(at, end, v);
    const bool last = rest == end;
    if (error != std::errc{} || (!last && (*rest != ' ' || rest + 1 == end)))
      return set(path, std::string(text));  // throws the error
    list.push_back(v);
    at = last ? end : rest + 1;
  }
  set(path, list);
}

}  // namespace gradwire
