#include "python/core/python_compressor.h"

#include <vector>

#include "python/core/bind.h"
#include "python/core/payload.h"
#include "python/core/random.h"

namespace gradwire::python {

py::object generator_of(RandomStream random) {
  const py::object make = py::module_::import("numpy.random").attr("default_rng");
  const std::uint64_t first = random.next(), second = random.next();
  return make(py::make_tuple(first, second));
}

CompressorParts::CompressorParts(const py::handle& compressor, Callbacks& run) : callbacks(run) {
  name = py::str(compressor.attr("name")());
  constants = compressor.attr("constants");
  compress = compressor.attr("compress");
  drawn_indices = own_method(compressor, "gradwire._compressor", "UserCompressor", "drawn_indices");
  is_thread_safe = compressor.attr("thread_safe").cast<bool>();
}

template <class Real>
CompressorConstants PythonCompressor<Real>::constants(std::size_t d) const {
  return call_python(parts_->callbacks.trouble, [&] {
    const py::object made = parts_->constants(d);
    if (!py::isinstance<CompressorConstants>(made))
      throw py::type_error(
          "constants(dim) must return gradwire.CompressorConstants, as those of of_unbiased(omega, zeta)");
    return made.cast<CompressorConstants>();
  });
}

template <class Real>
Compressed<Real> PythonCompressor<Real>::compress(std::span<const Real> v, RandomStream& random) const {
  const NumPy& numpy = parts_->callbacks.numpy;
  return call_python(
      parts_->callbacks.trouble,
      [&] {
        const py::object array = numpy.array_of(v);
        return compressed_of<Real>(numpy, parts_->compress(array, random), v.size(),
                                   "what compress() returned");
      },
      [this] { return "in compress() of the compressor " + parts_->name; });
}

template <class Real>
std::optional<std::vector<std::uint32_t>> PythonCompressor<Real>::drawn_indices(std::size_t d,
                                                                                RandomStream& random) const {
  if (parts_->drawn_indices.ptr() == Py_None) return std::nullopt;
  const NumPy& numpy = parts_->callbacks.numpy;
  return call_python(
      parts_->callbacks.trouble,
      [&]() -> std::optional<std::vector<std::uint32_t>> {
        const py::object made = parts_->drawn_indices(d, random);
        if (made.is_none()) return std::nullopt;
        const py::object indices = numpy.as_array(made).attr("astype")("uint32");
        return vector_of<std::uint32_t>(numpy, indices, kAnyLength, "what drawn_indices() returned");
      },
      [this] { return "in drawn_indices() of the compressor " + parts_->name; });
}

template class PythonCompressor<float>;
template class PythonCompressor<double>;

void bind_user_compressor(py::module_& m) {
  py::class_<RandomStream>(m, "RandomStream",
                           "Random numbers that depend on nothing but (seed, round, client, part).")
      .def("next", &RandomStream::next, "Returns a number below 2**64.")
      .def("uniform", &RandomStream::uniform, "Returns a number in [0, 1).")
      .def("below", &RandomStream::below, py::arg("k"), "Returns an integer in [0, k), k > 0.")
      .def("generator", &generator_of, "Returns a generator of NumPy that the next two numbers determine.");
  py::class_<CompressorConstants>(m, "CompressorConstants",
                                  "The constants of a compressor on R^dim that theory needs, for one client.")
      .def_static("of_unbiased", &CompressorConstants::of_unbiased, py::arg("omega"), py::arg("zeta"),
                  "E C(v) = v and E |C(v) - v|^2 <= omega |v|^2; zeta: expected number of sent numbers.")
      .def_static("of_contractive", &CompressorConstants::of_contractive, py::arg("alpha"), py::arg("zeta"),
                  "E |C(v) - v|^2 <= (1 - alpha) |v|^2; zeta: expected number of sent numbers.")
      .def_readonly("unbiased", &CompressorConstants::unbiased)
      .def_readonly("omega", &CompressorConstants::omega)
      .def_readonly("alpha", &CompressorConstants::alpha)
      .def_readonly("zeta", &CompressorConstants::zeta);
}

}  // namespace gradwire::python
