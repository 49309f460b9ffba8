#include "config/start_point.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/array_format.h"
#include "base/config_error.h"
#include "base/rng_stream.h"
#include "base/text_lines.h"
#include "base/value.h"
#include "config/experiment_spec.h"
#include "engine/files/number_file.h"
#include "storage/model_file.h"

namespace gradwire {
namespace {

constexpr const char* kKey = "run.x0";
constexpr std::string_view kFilePrefix = "file:";
constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kProbedBytes = 4096;  // bytes that distinguish text from other files

// Returns standard normal numbers, shape (d). Box and Muller, "A note on the generation of random normal
// deviates", 1958.
std::vector<double> standard_normal(std::uint64_t seed, std::size_t d) {
  RngStream stream({seed, kServerClient, 0, RngDomain::kStart});
  std::vector<double> x(d);
  for (std::size_t j = 0; j < d; j += 2) {
    const double radius = std::sqrt(-2 * std::log(1 - stream.uniform()));
    const double angle = 2 * std::numbers::pi * stream.uniform();
    x[j] = radius * std::cos(angle);
    if (j + 1 < d) x[j + 1] = radius * std::sin(angle);
  }
  return x;
}

bool is_binary_model(std::string_view content) {
  return content.starts_with(kModelMagic) || content.starts_with(kNumbersMagic) ||
         content.starts_with(kNpyMagic);
}

// Returns whether the content is neither text nor a known format. Otherwise the errors would call its lines
// misspelt numbers.
bool is_foreign(std::string_view content) {
  const std::string_view head = content.substr(0, kProbedBytes);
  return std::any_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f;
  });
}

// Reads one number per line, at most d + 1.
std::vector<double> numbers_of_text(std::string_view content, const std::string& name, std::size_t d) {
  if (is_foreign(content))
    throw ConfigError(kKey, name +
                                ": is neither text nor a file of numbers that this program knows; give a "
                                ".npy, a .gwn, a model.bin, or text with a number in each line");
  std::vector<double> x;
  for (std::size_t number = 1; x.size() <= d && !content.empty(); ++number) {
    const std::string_view text = trim(take_line(content));
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

// Throws unless all numbers are finite. Otherwise the run would report divergence and advise a smaller step.
void check_finite(std::span<const double> x, Precision precision, const std::string& name) {
  for (std::size_t j = 0; j < x.size(); ++j) {
    const bool fits = precision == Precision::kFp64 || std::isfinite(static_cast<float>(x[j]));
    if (std::isfinite(x[j]) && fits) continue;
    const std::string number =
        name + ": number " + std::to_string(j + 1) + " of " + std::to_string(x.size()) + " is ";
    throw ConfigError(
        kKey, std::isfinite(x[j])
                  ? number + rounded_text(x[j], 3) +
                        ", which precision = \"fp32\" cannot hold; write precision = \"fp64\""
                  : number + (std::isnan(x[j]) ? "nan" : "infinite") + "; give a model of finite numbers");
  }
}

// REQUIRES: `bytes` are those of a model.
std::vector<double> numbers_of_model(std::span<const std::byte> bytes, const std::filesystem::path& file,
                                     std::size_t d) {
  const auto refuse = [&](const Error& error) { return ConfigError(kKey, file_error(file, error).message); };
  const Result<NumbersView> view = read_numbers(bytes);
  if (!view) throw refuse(view.error());
  // Check this first, because the conversion allocates as many numbers as the file declares.
  if (view->count != d)
    throw refuse({"holds " + std::to_string(view->count) + " numbers, but the model of this experiment has " +
                  std::to_string(d)});
  Result<std::vector<double>> x = model_numbers(*view);
  if (!x) throw refuse(x.error());
  return std::move(*x);
}

std::vector<double> read_start(const std::filesystem::path& file, std::size_t d, Precision precision) {
  const std::string name = file.string();
  const Result<FileBytes> opened = FileBytes::open(file);
  if (!opened) throw ConfigError(kKey, opened.error().message);
  const std::span<const std::byte> bytes = opened->bytes();
  const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<double> x;
  if (is_binary_model(content)) {
    x = numbers_of_model(bytes, file, d);
  } else {
    x = numbers_of_text(without_byte_order_mark(content), name, d);
    if (x.size() != d)
      throw ConfigError(kKey, name + ": holds " + std::to_string(x.size()) +
                                  (x.size() > d ? " numbers or more" : " numbers") +
                                  ", but the model of this experiment has " + std::to_string(d));
  }
  check_finite(x, precision, name);
  return x;
}

}  // namespace

std::vector<double> start_point(const ExperimentSpec& experiment, const DataSchema& schema,
                                const std::filesystem::path& base) {
  const ProblemSpec spec = problem_spec(experiment);
  const std::size_t d = model_dim(spec, schema);
  const std::string& x0 = experiment.run.x0;
  if (x0 == "zeros") return std::vector<double>(d);
  if (x0 == "normal") return standard_normal(experiment.seed, d);
  if (x0 == "model" && spec.info().brings_functions)
    throw ConfigError(
        kKey,
        "functions of a program have no initial parameters, so x0 cannot be \"model\"; write zeros "
        "or normal, or give the start point with the functions");
  if (x0 == "model") return model_start(spec, schema);
  if (x0.starts_with(kFilePrefix))
    return read_start(base / x0.substr(kFilePrefix.size()), d, experiment.precision);
  throw ConfigError(kKey, "unknown x0 '" + x0 + "'; use zeros, normal, model or file:PATH");
}

std::vector<double> checked_start_point(std::vector<double> x0, std::size_t d, Precision precision) {
  if (x0.size() != d)
    throw ConfigError(kKey, "the start point has " + std::to_string(x0.size()) +
                                " numbers, but the model has " + std::to_string(d));
  check_finite(x0, precision, "the start point");
  return x0;
}

std::vector<double> client_weights(const ExperimentSpec& experiment,
                                   std::span<const std::uint64_t> sample_counts) {
  if (experiment.clients.weights != Weighting::kSamples) return {};
  const std::uint64_t total = std::accumulate(sample_counts.begin(), sample_counts.end(), std::uint64_t{0});
  if (total == 0) return {};  // the functions are not means over samples
  std::vector<double> weights;
  for (const std::uint64_t count : sample_counts)
    weights.push_back(static_cast<double>(count) / static_cast<double>(total));
  return weights;
}

RoundLimits round_limits(const ExperimentSpec& experiment, bool over_network) {
  RoundLimits limits;
  limits.rounds = experiment.run.rounds;
  limits.evaluate_every = experiment.run.evaluate_every;
  const GradNorm rows = grad_norm_rows(experiment, over_network);
  limits.grad_norm = rows == GradNorm::kEvery          ? GradNormRows::kEvery
                     : rows == GradNorm::kFirstAndLast ? GradNormRows::kFirstAndLast
                                                       : GradNormRows::kNone;
  limits.evaluated_share = experiment.evaluation.clients;
  limits.stop_at_grad_norm_sq = experiment.run.stop_at_grad_norm_sq;
  limits.stop_at_loss = experiment.run.stop_at_loss.value;
  limits.stop_at_accuracy = experiment.run.stop_at_accuracy;
  limits.patience = experiment.run.patience;
  limits.quorum = experiment.server.quorum;
  limits.norm = {experiment.server.norm_limit, experiment.server.norm_action};
  limits.over_selection = experiment.server.over_selection;
  limits.deadline_seconds = experiment.server.deadline_ms / 1000.0;
  return limits;
}

}  // namespace gradwire
