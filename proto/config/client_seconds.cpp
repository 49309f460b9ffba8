#include "proto/config/client_seconds.h"

#include <charconv>
#include <cmath>
#include <string>

#include "base/config_error.h"
#include "base/nearest.h"
#include "base/random.h"

namespace gradwire {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw ConfigError("clients.seconds", "seconds '" + std::string(text) + "': " + why);
}

// A number above 0 and below 1e12: also the sum of many is exact enough.
bool read_seconds(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0 && value < 1e12;
}

}  // namespace

ClientSeconds parse_client_seconds(std::string_view text) {
  ClientSeconds seconds;
  if (text.empty() || read_seconds(text, seconds.scale)) return seconds;
  std::string_view word = text;
  if (const std::size_t star = text.find('*'); star != std::string_view::npos) {
    if (!read_seconds(text.substr(0, star), seconds.scale))
      refuse(text, "a number of seconds above 0 is needed in front of the *, as in 0.1*sqrt");
    word = text.substr(star + 1);
  }
  if (word == "sqrt") {
    seconds.kind = ClientSeconds::Kind::kSqrt;
  } else if (word == "linear") {
    seconds.kind = ClientSeconds::Kind::kLinear;
  } else if (word.starts_with("lognormal:")) {
    seconds.kind = ClientSeconds::Kind::kLogNormal;
    if (!read_seconds(word.substr(10), seconds.sigma) || seconds.sigma > 10)
      refuse(text,
             "lognormal needs the standard deviation of the logarithm, above 0 and at most 10, as in "
             "lognormal:0.5");
  } else {
    refuse(text, "a number of seconds above 0, or a word is needed" +
                     suggest(word.substr(0, word.find(':')), {"sqrt", "linear", "lognormal:SIGMA"}));
  }
  return seconds;
}

double ClientSeconds::of(std::uint64_t seed, std::uint32_t i, std::uint64_t ticket) const {
  switch (kind) {
    case Kind::kEqual: break;
    case Kind::kSqrt: return scale * std::sqrt(i + 1.0);
    case Kind::kLinear: return scale * (i + 1.0);
    case Kind::kLogNormal: {
      Random random(seed, "client seconds", (static_cast<std::uint64_t>(i) << 32) ^ ticket);
      return scale * portable_exp(sigma * random.normal() - sigma * sigma / 2);
    }
  }
  return scale;
}

}  // namespace gradwire
