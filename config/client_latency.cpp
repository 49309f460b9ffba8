#include "config/client_latency.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <utility>

#include "base/config_error.h"
#include "base/random.h"
#include "base/suggest.h"
#include "base/text_lines.h"

namespace gradwire {
namespace {

constexpr std::string_view kTracePrefix = "file:", kFailPrefix = "+fail:";
constexpr std::size_t kMostNumbers = 10'000'000;  // in a trace
constexpr double kForever = std::numeric_limits<double>::infinity();

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw ConfigError("clients.latency", "latency '" + std::string(text) + "': " + why);
}

// Reads a number above 0 and below 1e12, so that the sum of many is exact enough.
bool read_seconds(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0 && value < 1e12;
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

// Returns whether `line` may have a decimal comma: a comma right between two digits, and no decimal point.
bool may_have_decimal_comma(std::string_view line) {
  constexpr std::string_view kDigits = "0123456789";
  if (line.empty() || line.find('.') != line.npos) return false;
  for (std::size_t at = line.find(',', 1); at < line.size() - 1; at = line.find(',', at + 1))
    if (kDigits.find(line[at - 1]) != kDigits.npos && kDigits.find(line[at + 1]) != kDigits.npos) return true;
  return false;
}

// Reads the numbers of a line, which spaces, tabs or commas separate. Returns false if one is not a time.
bool read_line(std::string_view line, std::vector<double>& numbers) {
  constexpr std::string_view kBetween = " \t,";
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBetween), line.size()));
    if (line.empty()) return true;
    const std::string_view word = line.substr(0, line.find_first_of(kBetween));
    double value = kForever;
    if (word != "inf" && !read_seconds(word, value)) return false;
    numbers.push_back(value);
    line.remove_prefix(word.size());
  }
}

}  // namespace

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

void read_traces(ClientLatency& seconds, const std::filesystem::path& base, std::uint32_t n) {
  if (seconds.trace.empty()) return;
  const std::string name = (base / seconds.trace).string();
  const auto fail = [&](const std::string& why) { throw ConfigError("clients.latency", name + why); };
  std::ifstream in(name, std::ios::binary);
  if (!in) fail(": cannot be opened; correct the path of latency");
  std::string read;
  std::string_view rest;  // the unread part of `read`, which has several lines if they end with CR alone
  std::size_t total = 0;
  seconds.traces.clear();
  while (seconds.traces.size() < n) {
    if (rest.empty()) {
      if (!std::getline(in, read)) break;
      rest = seconds.traces.empty() ? without_byte_order_mark(read) : read;
    }
    const std::string_view line = take_line(rest);
    const std::string here = ":" + std::to_string(seconds.traces.size() + 1) + ": ";
    std::vector<double>& numbers = seconds.traces.emplace_back();
    if (may_have_decimal_comma(line))
      fail(here + "a comma right between two digits; write 1.5 for one number, and 1 5 for two");
    if (!read_line(line, numbers))
      fail(here + "the line of a client holds numbers of seconds above 0, or inf, with spaces between them");
    if (numbers.empty()) fail(here + "the line of a client needs at least one number");
    total += numbers.size();
    if (total > kMostNumbers)
      fail(here + "a trace holds at most " + std::to_string(kMostNumbers) + " numbers");
  }
  if (seconds.traces.size() < n)
    fail(": has " + std::to_string(seconds.traces.size()) + " lines, but there are " + std::to_string(n) +
         " clients; give each a line");
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
