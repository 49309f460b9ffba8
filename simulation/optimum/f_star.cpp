#include "simulation/optimum/f_star.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <variant>

#include "config/experiment_file.h"
#include "config/start_point.h"
#include "engine/data/readers/source.h"
#include "simulation/optimum/f_star_file.h"
#include "simulation/optimum/minimise.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

// Smallest eigenvalue, as a share of the largest. Below it, A is singular up to the rounding of its entries.
constexpr double kSmallestEigenvalue = 1e-15;
constexpr std::size_t kNewtonDim = 1500;           // a step takes about a second
constexpr std::size_t kHessianBytes = 512u << 20;  // least squares keeps one Hessian per client
constexpr std::uintmax_t kQuickFile = 64u << 20;   // a larger file takes long to read

// Returns f* of f(x) = x^T A x / 2 - b e_1^T x with A = tridiag(m, a, m): f* = -b^2 (A^-1)_11 / 2. (A^-1)_11
// is a sum over the eigenvectors sqrt(2 / (d + 1)) sin(j k pi / (d + 1)), j = 1..d, of A. All terms have the
// same sign. a + 2 m, the only difference of close numbers, is computed for each client, where it is exact.
// `Real` is the precision to which the oracles round A_i and b_i.
template <class Real>
std::optional<double> quadratic_f_star(const QuadraticFamily& family) {
  long double neighbour = 0, excess = 0, linear = 0;  // m, a + 2 m, b
  const auto n = static_cast<long double>(family.clients());
  for (std::uint32_t i = 0; i < family.clients(); ++i) {
    const auto diagonal = static_cast<Real>(family.nu(i) / 2 + family.shift());
    const auto off_diagonal = static_cast<Real>(-family.nu(i) / 4);
    neighbour += off_diagonal / n;
    excess += (static_cast<long double>(diagonal) + 2 * static_cast<long double>(off_diagonal)) / n;
    linear += static_cast<Real>(family.linear(i)) / n;
  }
  const auto d = static_cast<long double>(family.dim());
  const long double angle = std::numbers::pi_v<long double> / (2 * (d + 1));
  const long double largest = std::max(excess, excess - 4 * neighbour);  // an upper bound of the eigenvalues
  long double corner = 0;                                                // (A^-1)_11
  for (std::size_t k = 1; k <= family.dim(); ++k) {
    const long double sine = std::sin(angle * static_cast<long double>(k));
    const long double eigenvalue = excess - 4 * neighbour * sine * sine;
    if (!(eigenvalue > kSmallestEigenvalue * largest)) return std::nullopt;
    const long double entry = std::sin(2 * angle * static_cast<long double>(k));
    corner += 2 / (d + 1) * entry * entry / eigenvalue;
  }
  return static_cast<double>(-linear * linear * corner / 2);
}

std::optional<Optimum> minimum_of(const ExperimentSpec& e, const fs::path& base, const Reading& reading) {
  const ProblemSpec spec = problem_spec(e);
  SharedSamples data = load_samples(e, base, std::nullopt, reading);
  const DataSchema schema = schema_of(data, spec);
  check_schema(spec, schema);
  if (data.made.part) return std::nullopt;  // rows are not stored
  std::vector<std::uint64_t> samples;
  for (std::uint32_t i = 0; i < data.clients(); ++i) samples.push_back(data.train_count(i));
  const std::vector<double> weights = client_weights(e, samples);
  const std::size_t d = model_dim(spec, schema);
  const auto functions = make_client_objectives<double>(spec, schema, data);
  MeanFunction f(*functions, weights);
  const bool keeps = std::holds_alternative<LeastSquares>(e.problem);
  const std::size_t triangles = keeps ? data.clients() + std::size_t{2} : 3;
  std::optional<Minimum> found;
  if (d <= kNewtonDim && triangles * upper_size(d) <= kHessianBytes / sizeof(double))
    found = newton_minimum(f);
  else if (const double mu = known_convexity(spec); mu > 0)
    found = accelerated_minimum(f, smoothness(spec, schema, data.all_parts(), weights).L, mu);
  if (!found) return std::nullopt;
  Optimum optimum{found->value, std::move(found->x), 0};
  std::vector<double> gradient(d);
  f.value_and_gradient(optimum.x, gradient);
  for (const double g : gradient) optimum.grad_norm = std::hypot(optimum.grad_norm, g);
  return optimum;
}

const LinearModel* linear_model(const ProblemType& problem) {
  if (const auto* squares = std::get_if<LeastSquares>(&problem)) return squares;
  return std::get_if<Logistic>(&problem);
}

// Returns true if the samples of a client, and with them f, depend on the seed.
bool draws(const ExperimentSpec& e) {
  const SampleSource* const source = sources_of(e.problem);
  return source == nullptr || source->data == "synthetic" || source->test_share > 0 ||
         e.clients.samples_per_client > 0 || e.clients.partition != PartitionKind::kContiguous;
}

// Returns everything that f depends on as text: the experiment without its algorithm, and with checksums in
// place of paths.
std::string problem_text(ExperimentSpec e, const fs::path& base) {
  const ExperimentSpec defaults;
  e.name = "problem";
  e.algorithm = defaults.algorithm;
  e.algorithm.name = "gd";
  e.run = defaults.run;
  e.run.x0 = "zeros";
  e.server = defaults.server;
  e.faults = defaults.faults;
  e.clients.participation = 1;
  e.clients.latency.clear();
  if (!draws(e)) e.seed = defaults.seed;
  const bool convex = is_convex(e);
  map_paths(
      e, [&](const fs::path& path) { return convex ? fs::path(checksum_of(find_data(path, base))) : path; });
  return to_toml(e);
}

}  // namespace

bool is_convex(const ExperimentSpec& e) {
  if (std::holds_alternative<Quadratic>(e.problem)) return true;
  if (const auto* logistic = std::get_if<Logistic>(&e.problem);
      logistic && logistic->loss != LinearLoss::kLogistic)
    return false;
  const LinearModel* const model = linear_model(e.problem);
  return model != nullptr && model->regularizer != Regularizer::kNonconvex;
}

std::optional<double> find_f_star(const ExperimentSpec& e, const fs::path& base, const Reading& reading) {
  if (!is_convex(e) || !has_minimum(e.problem)) return std::nullopt;
  const auto* const quadratic = std::get_if<Quadratic>(&e.problem);
  if (quadratic == nullptr) {
    const std::optional<Optimum> found = minimum_of(e, base, reading);
    return found ? std::optional(found->f_star) : std::nullopt;
  }
  const QuadraticFamily family(quadratic->shape, e.clients.count, e.seed);
  return e.precision == Precision::kFp32 ? quadratic_f_star<float>(family) : quadratic_f_star<double>(family);
}

std::optional<Optimum> find_optimum(const ExperimentSpec& e, const fs::path& base) {
  if (!is_convex(e) || !has_minimum(e.problem)) return std::nullopt;
  std::optional<Optimum> found = minimum_of(e, base, {});
  if (found && std::holds_alternative<Quadratic>(e.problem))
    found->f_star = find_f_star(e, base).value_or(found->f_star);
  return found;
}

FStars::OfRun FStars::of(const fs::path& config) {
  const LoadedExperiment loaded = load_experiment(config);
  return of(loaded.experiment, loaded.folder());
}

FStars::OfRun FStars::of(const ExperimentSpec& experiment, const fs::path& base) {
  const std::string problem = problem_text(experiment, base);
  if (const auto at = known_.find(problem); at != known_.end()) return {problem, at->second};
  std::optional<double> value;
  if (is_convex(experiment)) {
    const FStarFile file(cache_, problem);
    if (const auto kept = file.read()) {
      value = kept->value;
    } else {
      value = find_f_star(experiment, base);
      file.write({value});
      ++computed_;
    }
  }
  known_.emplace(problem, value);
  return {problem, value};
}

std::optional<double> FStars::known(const ExperimentSpec& e, const fs::path& base) const {
  if (!is_convex(e) || !has_minimum(e.problem)) return std::nullopt;
  if (std::holds_alternative<Quadratic>(e.problem)) return find_f_star(e, base);
  bool is_large = false;
  ExperimentSpec unused = e;
  map_paths(unused, [&](const fs::path& path) {
    std::error_code error;
    const fs::path file = find_data(path, base);
    is_large |= !fs::is_directory(file, error) && fs::file_size(file, error) > kQuickFile;
    return path;
  });
  if (is_large) return std::nullopt;
  const auto kept = FStarFile(cache_, problem_text(e, base)).read();
  return kept ? kept->value : std::nullopt;
}

void FStars::keep(const ExperimentSpec& e, const fs::path& base, double value) const {
  FStarFile(cache_, problem_text(e, base)).write({value});
}

fs::path cache_folder() {
  // Relative paths must be ignored (XDG Base Directory Specification).
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/')
    return fs::path(cache) / "gradwire";
  if (const char* const home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return fs::path(home) / ".cache" / "gradwire";
  return {};
}

}  // namespace gradwire
