#include "config/client_latency.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/config_error.h"
#include "base/random.h"
#include "base/suggest.h"

namespace gradwire {
namespace {

constexpr std::string_view kTracePrefix = "file:", kFailPrefix = "+fail:";
constexpr double kForever = std::numeric_limits<double>::infinity();

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw ConfigError("clients.latency", "latency '" + std::string(text) + "': " + why);
}

// Reads "+fail:P" at the end of `text`, and returns the text before it.
std::string_view take_failure(std::string_view text, ClientLatency& seconds) {
  const std::size_t at = text.rfind(kFailPrefix);
  if (at == text.npos) return text;
  if (!read_seconds(text.substr(at + kFailPrefix.size()), seconds.failure) || seconds.failure >= 1)
    refuse(text, "+fail needs a probability above 0 and below 1, as in sqrt+fail:0.1");
  return text.substr(0, at);
}

// Reads one factor. Returns false if `word` is unknown.
bool read_word(std::string_view text, std::string_view word, ClientLatency& seconds) {
  using OfClient = ClientLatency::OfClient;
  using Drawn = ClientLatency::Drawn;
  const bool is_sqrt = word == "sqrt", is_normal = word.starts_with("lognormal:");
  if (is_sqrt || word == "linear") {
    if (seconds.of_client != OfClient::kEqual) refuse(text, "one of sqrt and linear is enough");
    seconds.of_client = is_sqrt ? OfClient::kSqrt : OfClient::kLinear;
    return true;
  }
  if (!is_normal && !word.starts_with("pareto:")) return false;
  if (seconds.drawn != Drawn::kNothing) refuse(text, "one of lognormal and pareto is enough");
  seconds.drawn = is_normal ? Drawn::kLogNormal : Drawn::kPareto;
  const bool is_number = read_seconds(word.substr(word.find(':') + 1), seconds.shape);
  if (is_normal && !(is_number && seconds.shape <= 10))
    refuse(text,
           "lognormal needs the standard deviation of the logarithm, above 0 and at most 10, as in "
           "lognormal:0.5");
  if (!is_normal && !(is_number && seconds.shape > 1))
    refuse(text, "pareto needs its exponent, above 1 so that there is a mean, as in pareto:1.5");
  return true;
}

}  // namespace

bool read_seconds(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0 && value < 1e12;
}

ClientLatency parse_client_latency(std::string_view text) {
  ClientLatency seconds;
  if (text.empty()) return seconds;
  std::string_view rest = take_failure(text, seconds);
  if (read_seconds(rest, seconds.scale)) return seconds;
  const bool is_scaled = read_seconds(rest.substr(0, rest.find('*')), seconds.scale);
  if (is_scaled) rest.remove_prefix(rest.find('*') + 1);
  if (rest.starts_with(kTracePrefix)) {
    seconds.trace = rest.substr(kTracePrefix.size());
    if (seconds.trace.empty()) refuse(text, "file: needs a path, as in file:speeds.txt");
    return seconds;
  }
  for (bool more = true; more;) {
    const std::size_t star = rest.find('*');
    const std::string_view word = rest.substr(0, star);
    more = star != rest.npos;
    if (more) rest.remove_prefix(star + 1);
    if (read_word(text, word, seconds)) continue;
    if (more && !is_scaled && word.data() == text.data())
      refuse(text, "a number of seconds above 0 is needed in front of the *, as in 0.1*sqrt");
    refuse(text, "a number of seconds above 0, or a word is needed" +
                     suggest(word.substr(0, word.find(':')),
                             {"sqrt", "linear", "lognormal:SIGMA", "pareto:ALPHA", "file:PATH"}));
  }
  return seconds;
}

double ClientLatency::of(std::uint64_t seed, std::uint32_t i, std::uint64_t request_id,
                         std::uint64_t request) const {
  const std::uint64_t index = (static_cast<std::uint64_t>(i) << 32) ^ request_id;
  if (failure > 0 && Random(seed, "client failures", index).uniform() < failure) return kForever;
  double seconds = scale;
  if (!traces.empty()) return seconds * traces[i][request % traces[i].size()];
  switch (of_client) {
    case OfClient::kEqual: break;
    case OfClient::kSqrt: seconds *= std::sqrt(i + 1.0); break;
    case OfClient::kLinear: seconds *= i + 1.0; break;
  }
  if (drawn == Drawn::kNothing) return seconds;
  Random random(seed, "client seconds", index);
  // Both have mean 1: e^(sigma N - sigma^2/2), and (1 - 1/alpha) U^(-1/alpha).
  if (drawn == Drawn::kLogNormal) return seconds * portable_exp(shape * random.normal() - shape * shape / 2);
  return seconds * (1 - 1 / shape) * portable_exp(-portable_log(1 - random.uniform()) / shape);
}

}  // namespace gradwire
