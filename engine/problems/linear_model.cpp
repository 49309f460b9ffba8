#include "engine/problems/linear_model.h"

#include <cmath>

namespace gradwire {

void LinearModel::check(const DataSchema& schema) const {
  if (!(lambda >= 0) || !std::isfinite(lambda))
    throw DataError("problem.lambda must be a finite number, 0 or more");
  (void)rows.features(schema);
}

}  // namespace gradwire
