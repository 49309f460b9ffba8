// Compressors that are written in Python.
#pragma once

#include <string>

#include "gradwire/compressor.h"
#include "python/core/arrays.h"
#include "python/core/callbacks.h"
#include "python/core/python_oracle.h"

namespace gradwire::python {

// The functions of a gw.UserCompressor of Python, for one run. Made and destroyed with the GIL.
struct CompressorParts {
  CompressorParts(const py::handle& compressor, Callbacks& run);

  std::string name;
  py::object constants, compress, drawn_indices;  // drawn_indices is None unless the class defines it
  bool is_thread_safe;
  Callbacks& callbacks;
};

// Several copies share `parts`, which must outlive them.
template <class Real>
class PythonCompressor : public UserCompressor<Real> {
 public:
  explicit PythonCompressor(CompressorParts& parts) : parts_(&parts) {}

  std::string name() const override { return parts_->name; }
  CompressorConstants constants(std::size_t d) const override;
  Compressed<Real> compress(std::span<const Real> v, RandomStream& random) const override;
  std::optional<std::vector<std::uint32_t>> drawn_indices(std::size_t d, RandomStream& random) const override;

 private:
  CompressorParts* parts_;
};

}  // namespace gradwire::python
