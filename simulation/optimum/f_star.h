// f*, the smallest value of the f that a run minimises.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/experiment.h"

namespace gradwire {

// Quadratics: in closed form. Convex linear models: by Newton's method, or, of more than 1,500 parameters, by
// the accelerated gradient algorithm if f is strongly convex. To a few units in the last place of the largest
// client's loss. Nothing: f is not convex as far as is known, or has no minimum that these algorithms find.
// Paths are relative to `base`. Throws DataError.
std::optional<double> find_f_star(const Experiment& experiment, const std::filesystem::path& base);

// The same by those algorithms, quadratics too: x*, shape (d), as near as rounding lets them come.
std::optional<std::vector<double>> find_optimum(const Experiment& experiment,
                                                const std::filesystem::path& base);

// Whether find_f_star() tries: it does not need the data to say no.
bool is_convex(const Experiment& experiment);

// f* of the problems of runs: each is looked for once, and kept in files.
class FStars {
 public:
  // `cache`: folder of the files; empty: none. What stands there under a wrong name, cut off or changed is
  // looked for again.
  explicit FStars(std::filesystem::path cache) : cache_(std::move(cache)) {}

  struct OfRun {
    std::string problem;          // equal for runs that minimise the same f
    std::optional<double> value;  // nothing: f* cannot be computed
  };
  // `config`: the config.toml of a run. Throws ExperimentError or DataError.
  OfRun of(const std::filesystem::path& config);
  OfRun of(const Experiment& experiment, const std::filesystem::path& base);  // paths relative to `base`

  int computed() const { return computed_; }  // how many were in no file

 private:
  const std::filesystem::path cache_;
  std::map<std::string, std::optional<double>> known_;  // by problem
  int computed_ = 0;
};

// $XDG_CACHE_HOME/gradwire, or else ~/.cache/gradwire; empty: neither variable names a folder.
std::filesystem::path cache_folder();

}  // namespace gradwire
