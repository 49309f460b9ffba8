// f*, the smallest value of the objective f that a run minimises.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/experiment_spec.h"
#include "samples/local_problem.h"

namespace gradwire {

// Returns f* of quadratics in closed form, and of convex linear models by Newton's method. With more than
// 1,500 parameters, uses the accelerated gradient method if f is strongly convex. The error is a few units in
// the last place of the largest client's loss. Nullopt if f is not known to be convex, or no minimum is
// found. Paths are relative to `base`; `reading` reads the samples. Throws DataError.
std::optional<double> find_f_star(const ExperimentSpec& experiment, const std::filesystem::path& base,
                                  const Reading& reading = {});

struct Optimum {
  double f_star = 0;
  std::vector<double> x;  // x*, shape (d), as exact as rounding allows
  double grad_norm = 0;   // ||grad f|| at x
};
// Returns f* and x*. Finds x* by the iterative methods above, also for quadratics.
std::optional<Optimum> find_optimum(const ExperimentSpec& experiment, const std::filesystem::path& base);

// Returns true if find_f_star() would try; does not read the data.
bool is_convex(const ExperimentSpec& experiment);

// f* of the problems of several runs. Each is computed once and cached in files.
class FStars {
 public:
  // `cache` is the folder of the files; if it is empty, nothing is cached. A misnamed, truncated or changed
  // file is ignored, and its f* is computed again.
  explicit FStars(std::filesystem::path cache) : cache_(std::move(cache)) {}

  struct OfRun {
    std::string problem;          // equal for runs that minimise the same f
    std::optional<double> value;  // nullopt if f* cannot be computed
  };
  // Returns f* of a run. `config` is its config.toml. Throws ExperimentError or DataError.
  OfRun of(const std::filesystem::path& config);
  OfRun of(const ExperimentSpec& experiment, const std::filesystem::path& base);  // paths relative to `base`
  // Returns f* if it has a closed form or is in the cache. Computes no minimum, and reads no file of more
  // than 64 MiB. Throws DataError.
  std::optional<double> known(const ExperimentSpec& experiment, const std::filesystem::path& base) const;
  // Writes f* of an experiment into the cache.
  void keep(const ExperimentSpec& experiment, const std::filesystem::path& base, double value) const;

  int computed() const { return computed_; }  // number of f* that were not in a file

 private:
  const std::filesystem::path cache_;
  std::map<std::string, std::optional<double>> known_;  // by problem
  int computed_ = 0;
};

// Returns $XDG_CACHE_HOME/gradwire, else ~/.cache/gradwire. Empty if neither variable names a folder.
std::filesystem::path cache_folder();

}  // namespace gradwire
