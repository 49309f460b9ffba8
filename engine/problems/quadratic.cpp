#include "engine/problems/quadratic.h"

#include <cmath>

#include "engine/data/dataset.h"

namespace gradwire {

void Quadratic::check(const DataSchema&) const {
  if (shape.dim == 0) throw DataError("a quadratic problem needs its dimension: set problem.dim");
  if (!(shape.lambda >= 0) || !std::isfinite(shape.lambda))
    throw DataError("problem.lambda must be a finite number, 0 or more");
  if (!(shape.heterogeneity >= 0) || !std::isfinite(shape.heterogeneity))
    throw DataError("problem.heterogeneity must be a finite number, 0 or more");
}

std::vector<double> Quadratic::start(const DataSchema&, std::uint64_t /*seed*/) const {
  std::vector<double> start(shape.dim);
  if (!start.empty()) start[0] = std::sqrt(static_cast<double>(shape.dim));
  return start;
}

}  // namespace gradwire
