// gw.Payload: a compressed vector, in either precision.
#pragma once

#include <cstddef>
#include <utility>
#include <variant>

#include "gradwire/compressor.h"
#include "python/core/arrays.h"

namespace gradwire::python {

struct PyPayload {
  std::variant<Compressed<float>, Compressed<double>> content;

  template <class Real>
  explicit PyPayload(Compressed<Real> compressed) : content(std::move(compressed)) {}
};

// Returns what a Python function made: a Payload, or a vector of shape (d,). `what` names it in errors.
template <class Real>
Compressed<Real> compressed_of(const NumPy& numpy, py::handle made, std::size_t d, const char* what) {
  if (!py::isinstance<PyPayload>(made)) return Compressed<Real>::whole(vector_of<Real>(numpy, made, d, what));
  if (const auto* same = std::get_if<Compressed<Real>>(&made.cast<const PyPayload&>().content)) return *same;
  throw py::type_error(std::string(what) + " is a payload of the other precision");
}

}  // namespace gradwire::python
