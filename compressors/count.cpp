#include "compressors/count.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace gradwire {
namespace {

// Returns true if the whole text is one number.
template <class T>
bool number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

bool positive(std::string_view text, std::uint32_t& out) {
  std::uint32_t value = 0;
  if (!number(text, value) || value == 0) return false;
  out = value;
  return true;
}

std::string known(std::uint32_t count) { return count == 0 ? "" : std::to_string(count); }

}  // namespace

void Count::resolve(std::size_t d) {
  if (!(share > 0)) return;
  const double wanted = std::max(1.0, std::floor(share * static_cast<double>(d) + 0.5));
  *this = {static_cast<std::uint32_t>(std::min(wanted, static_cast<double>(d))), 0};
}

bool TextCodec<Count>::read(std::string_view text, Count& out) {
  if (!text.ends_with('%')) {
    Count c;
    if (!positive(text, c.count)) return false;
    out = c;
    return true;
  }
  double value = 0;
  if (!number(text.substr(0, text.size() - 1), value) || !(value / 100 > 0 && value <= 100)) return false;
  out = {0, value / 100};
  return true;
}

std::string TextCodec<Count>::write(const Count& c) {
  if (c.share == 0) return std::to_string(c.count);
  // 15 digits reproduce the number that a user typed, although 0.29 * 100 is not exactly 29. Print all digits
  // if 15 do not read back exactly.
  const double percent = c.share * 100;
  std::string text = rounded_text(percent, 15);
  if (std::strtod(text.c_str(), nullptr) / 100 != c.share) text = number_text(percent);
  return text + "%";
}

bool TextCodec<Clients>::read(std::string_view text, Clients& out) { return positive(text, out.count); }
std::string TextCodec<Clients>::write(const Clients& n) { return known(n.count); }

bool TextCodec<NormOrder>::read(std::string_view text, NormOrder& out) {
  double p = 0;
  if (!number(text, p) || !(p >= 1)) return false;
  out.p = p;
  return true;
}
std::string TextCodec<NormOrder>::write(const NormOrder& order) { return number_text(order.p); }

bool TextCodec<Rows>::read(std::string_view text, Rows& out) { return positive(text, out.count); }
std::string TextCodec<Rows>::write(const Rows& rows) { return known(rows.count); }

}  // namespace gradwire
