#include "proto/config/start_point.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <numbers>
#include <numeric>
#include <string>
#include <string_view>

#include "base/config_error.h"
#include "base/numbers.h"
#include "base/stream.h"
#include "proto/config/experiment.h"
#include "proto/store/model_file.h"

namespace gradwire {
namespace {

constexpr const char* kKey = "run.x0";
constexpr std::string_view kFilePrefix = "file:";
constexpr std::size_t kLongestLine = 4096;

// Box and Muller, "A note on the generation of random normal deviates", 1958.
std::vector<double> standard_normal(std::uint64_t seed, std::size_t d) {
  Stream stream({seed, kServerClient, 0, Purpose::kStart});
  std::vector<double> x(d);
  for (std::size_t j = 0; j < d; j += 2) {
    const double radius = std::sqrt(-2 * std::log(1 - stream.uniform()));
    const double angle = 2 * std::numbers::pi * stream.uniform();
    x[j] = radius * std::cos(angle);
    if (j + 1 < d) x[j + 1] = radius * std::sin(angle);
  }
  return x;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

// One number per line; at most d + 1 lines are read.
std::vector<double> read_numbers(std::istream& in, const std::string& name, std::size_t d) {
  std::vector<double> x;
  std::string line;
  for (std::size_t number = 1; x.size() <= d && std::getline(in, line); ++number) {
    const std::string_view text = trim(line);
    if (text.empty()) continue;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.size() > kLongestLine || error != std::errc() || end != text.data() + text.size() ||
        !std::isfinite(value))
      throw ConfigError(kKey, name + ":" + std::to_string(number) + ": expected one finite number per line");
    x.push_back(value);
  }
  return x;
}

std::vector<double> read_start(const std::filesystem::path& file, std::size_t d) {
  const std::string name = file.string();
  std::ifstream in(file, std::ios::binary);
  if (!in) throw ConfigError(kKey, name + ": cannot be opened; correct the path");
  std::string magic(kModelMagic.size(), '\0');
  in.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  std::vector<double> x;
  bool is_whole = true;
  if (magic == kModelMagic || magic == kNumbersMagic || magic.starts_with(kNpyMagic)) {
    x = read_model(file);
  } else {
    in.clear();
    in.seekg(0);
    x = read_numbers(in, name, d);
    is_whole = x.size() <= d;
  }
  if (x.size() != d) {
    throw ConfigError(kKey, name + ": holds " + (is_whole ? std::to_string(x.size()) : "more") +
                                " numbers, but the model of this experiment has " + std::to_string(d));
  }
  return x;
}

}  // namespace

std::vector<double> start_point(const Experiment& experiment, const Agreement& agreement,
                                const std::filesystem::path& base) {
  const ProblemSpec spec = problem_spec(experiment);
  const std::size_t d = model_dim(spec, agreement);
  const std::string& x0 = experiment.run.x0;
  if (x0 == "zeros") return std::vector<double>(d);
  if (x0 == "normal") return standard_normal(experiment.seed, d);
  if (x0 == "model") return model_start(spec, agreement);
  if (x0.starts_with(kFilePrefix)) return read_start(base / x0.substr(kFilePrefix.size()), d);
  throw ConfigError(kKey, "unknown x0 '" + x0 + "'; use zeros, normal, model or file:PATH");
}

std::vector<double> client_weights(const Experiment& experiment,
                                   std::span<const std::uint64_t> sample_counts) {
  if (experiment.clients.weights != Weighting::kSamples) return {};
  const std::uint64_t total = std::accumulate(sample_counts.begin(), sample_counts.end(), std::uint64_t{0});
  if (total == 0) return {};  // functions that are no means over samples
  std::vector<double> weights;
  for (const std::uint64_t count : sample_counts)
    weights.push_back(static_cast<double>(count) / static_cast<double>(total));
  return weights;
}

RoundLimits round_limits(const Experiment& experiment, bool over_network) {
  RoundLimits limits;
  limits.rounds = experiment.run.rounds;
  limits.evaluate_every = experiment.run.evaluate_every;
  const GradNorm rows = grad_norm_rows(experiment, over_network);
  limits.grad_norm = rows == GradNorm::kEvery  ? GradNormRows::kEvery
                     : rows == GradNorm::kEnds ? GradNormRows::kEnds
                                               : GradNormRows::kNone;
  limits.evaluated_share = experiment.evaluation.clients;
  limits.stop_at_grad_norm_sq = experiment.run.stop_at_grad_norm_sq;
  limits.quorum = experiment.server.quorum;
  limits.norm = {experiment.server.norm_limit, experiment.server.norm_action};
  limits.over_selection = experiment.server.over_selection;
  limits.deadline_seconds = experiment.server.deadline_ms / 1000.0;
  return limits;
}

}  // namespace gradwire
