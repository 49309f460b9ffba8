#include "engine/problems/logistic.h"

#include <cmath>
#include <string>

namespace gradwire {

void Logistic::check(const DataSchema& schema) const {
  LinearModel::check(schema);
  if (schema.labels.size() == 2) return;
  throw DataError("logistic regression needs exactly two labels but the data has " + labels_found(schema) +
                  (schema.labels.size() < 2 ? "; add samples with another label"
                                            : "; for more classes use kind = \"mlp\"") +
                  other_label(schema));
}

// For (1 - sigma(z))^2, with s = 1 - sigma(z), l'' is 2 s^2 (1 - s) (2 - 3 s) in [-0.1202, 0.1541]. It is
// largest at a root of the derivative 2 s (4 - 15 s + 12 s^2).
LossCurvature Logistic::curvature() const {
  if (loss == LinearLoss::kLogistic) return {.largest = 0.25};
  const double s = (15 - std::sqrt(33.0)) / 24;
  return {.largest = 2 * s * s * (1 - s) * (2 - 3 * s), .convex = false};
}

}  // namespace gradwire
