#include "engine/problems/linear_model.h"

#include <cmath>

namespace gradwire {

void LinearModel::check(const DataSchema& schema) const {
  if (!(lambda >= 0) || !std::isfinite(lambda))
    throw DataError("problem.lambda must be a finite number, 0 or more");
  (void)rows.features(schema);
}

std::vector<double> LinearModel::outputs(const DataSchema& schema, const Dataset& data,
                                         std::span<const double> x) const {
  check_columns(data, rows.features(schema));
  std::vector<double> values(data.rows());
  for (std::size_t r = 0; r < data.rows(); ++r) {
    const auto columns = data.row_columns(r);
    const auto features = data.row_values(r);
    for (std::size_t k = 0; k < columns.size(); ++k) values[r] += features[k] * x[columns[k]];
    if (bias) values[r] += x.back();
  }
  return values;
}

}  // namespace gradwire
