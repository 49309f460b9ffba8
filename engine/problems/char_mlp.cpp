#include "engine/problems/char_mlp.h"

#include "base/config_error.h"

namespace gradwire {

void CharMlp::check() const {
  text.check();
  if (shape.hidden.empty())
    throw ConfigError("problem.hidden",
                      "hidden needs at least one layer for kind 'char_mlp', as in hidden = [128]");
}

void CharMlp::check(const DataSchema& schema) const {
  check_alphabet(schema, 1);
  check_widths("hidden", shape.hidden);
  if (shape.hidden.empty())
    throw DataError("problem.hidden is empty; a char_mlp has at least one hidden layer");
  check_activation(shape.activation);
  check_range("context", shape.context, kMaxContext);
  check_range("width", shape.width, kMaxWidth);
}

}  // namespace gradwire
