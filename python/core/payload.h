// gw.Payload: a compressed vector, in either precision.
#pragma once

#include "gradwire/compressor.h"

#include <utility>
#include <variant>

#include "python/core/arrays.h"

namespace gradwire::python {

struct PyPayload {
  std::variant<Compressed<float>, Compressed<double>> content;

  template <class Real>
  explicit PyPayload(Compressed<Real> compressed) : content(std::move(compressed)) {}
};

}  // namespace gradwire::python
