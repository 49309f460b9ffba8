#include "engine/problems/gpt.h"

#include <cmath>
#include <string>

#include "base/config_error.h"

namespace gradwire {

void Gpt::check() const {
  text.check();
  if (shape.width % shape.heads != 0)
    throw ConfigError("problem.heads", "heads = " + std::to_string(shape.heads) +
                                           " does not divide width = " + std::to_string(shape.width));
}

void Gpt::check(const DataSchema& schema) const {
  check_alphabet(schema, 2);
  check_activation(shape.activation);
  check_range("context", shape.context, kMaxContext);
  check_range("width", shape.width, kMaxWidth);
  check_range("layers", shape.layers, kMaxLayers);
  check_range("heads", shape.heads, static_cast<double>(shape.width));
  if (shape.width % shape.heads != 0) {
    throw DataError("problem.heads = " + std::to_string(shape.heads) +
                    " does not divide problem.width = " + std::to_string(shape.width));
  }
  if (!(shape.epsilon >= 0) || !std::isfinite(shape.epsilon))
    throw DataError("problem.epsilon must be a finite number, 0 or more");
}

}  // namespace gradwire
