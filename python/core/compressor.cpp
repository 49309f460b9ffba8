// gw.Compressor and gw.Payload.
#include "gradwire/compressor.h"

#include <string>

#include "python/core/bind.h"
#include "python/core/payload.h"

namespace gradwire::python {
namespace {

// Calls f() with a number of the precision of `array`, which anything else than float32 makes float64.
template <class F>
auto in_precision_of(const NumPy& numpy, py::handle object, F&& f) {
  const py::object array = numpy.as_array(object);
  if (std::string(py::str(array.attr("dtype"))) == "float32") return f(array, float());
  return f(py::object(array.attr("astype")("float64", py::arg("copy") = false)), double());
}

PyPayload sparse(std::size_t dim, py::handle indices, py::handle values) {
  const NumPy numpy;
  const py::object list = numpy.as_array(indices).attr("astype")("uint32");
  return in_precision_of(numpy, values, [&](const py::object& array, auto real) {
    using Real = decltype(real);
    return PyPayload(Compressed<Real>::entries(dim,
                                               vector_of<std::uint32_t>(numpy, list, kAnyLength, "indices"),
                                               vector_of<Real>(numpy, array, kAnyLength, "values")));
  });
}

py::object dense(const PyPayload& self) {
  return std::visit(
      [](const auto& compressed) {
        const auto vector = compressed.to_vector();
        return NumPy().array_of(std::span(std::as_const(vector)));
      },
      self.content);
}

void add_to(const PyPayload& self, const py::object& out, double scale) {
  std::visit(
      [&]<class Real>(const Compressed<Real>& compressed) {
        std::vector<Real> sum = vector_of<Real>(NumPy(), out, compressed.dim(), "out");
        compressed.add_to(sum, static_cast<Real>(scale));
        const Buffer to(out, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS);
        std::memcpy(to->buf, sum.data(), sum.size() * sizeof(Real));
      },
      self.content);
}

// Returns what f makes of the vector, in either precision.
template <class F>
auto property(F f) {
  return [f](const PyPayload& self) { return std::visit(f, self.content); };
}

}  // namespace

void bind_compressor(py::module_& m) {
  py::class_<PyPayload>(m, "Payload", "A vector as it is sent.")
      .def_static("sparse", &sparse, py::arg("dim"), py::arg("indices"), py::arg("values"),
                  "Makes a payload of the entries values[k] at indices[k], which ascend; the others are 0.")
      .def_property_readonly("dim", property([](const auto& c) { return c.dim(); }))
      .def_property_readonly("bits", property([](const auto& c) { return c.bits(); }),
                             "Bits by the definition of the compressor.")
      .def_property_readonly("paper_bits", property([](const auto& c) { return c.paper_bits(); }),
                             "Bits as papers count: 32 a number, nothing for indices.")
      .def_property_readonly("indices", property([](const auto& c) {
                               const auto indices = c.indices();
                               return NumPy().array_of(std::span(indices));
                             }))
      .def_property_readonly("values", property([](const auto& c) {
                               const auto values = c.values();
                               return NumPy().array_of(std::span(values));
                             }))
      .def("dense", &dense, "Returns the vector, shape (dim,).")
      .def("add_to", &add_to, py::arg("out"), py::arg("scale") = 1.0, "Computes out += scale * the vector.");

  py::class_<NamedCompressor>(m, "Compressor", "A compressor of the library, as gw.compressors() names them.")
      .def(py::init<std::string_view, std::size_t, std::uint32_t>(), py::arg("spec"), py::arg("dim"),
           py::arg("clients") = 1)
      .def_property_readonly("spec", &NamedCompressor::spec)
      .def_property_readonly("unbiased", [](const NamedCompressor& c) { return c.constants().unbiased; })
      .def_property_readonly("alpha", [](const NamedCompressor& c) { return c.constants().alpha; })
      .def_property_readonly("omega", [](const NamedCompressor& c) { return c.constants().omega; })
      .def_property_readonly("zeta", [](const NamedCompressor& c) { return c.constants().zeta; })
      .def_property_readonly("A", [](const NamedCompressor& c) { return c.constants().A; })
      .def_property_readonly("B", [](const NamedCompressor& c) { return c.constants().B; })
      .def(
          "__call__",
          [](const NamedCompressor& self, py::handle v, std::uint64_t seed, std::uint32_t round,
             std::uint32_t client, std::uint32_t part) {
            const NumPy numpy;
            return in_precision_of(numpy, v, [&](const py::object& array, auto real) {
              using Real = decltype(real);
              const std::vector<Real> vector = vector_of<Real>(numpy, array, kAnyLength, "v");
              return PyPayload(self.compress<Real>(
                  vector, {.seed = seed, .round = round, .client = client, .part = part}));
            });
          },
          py::arg("v"), py::kw_only(), py::arg("seed") = 1, py::arg("round") = 0, py::arg("client") = 0,
          py::arg("part") = 0, "Compresses v, shape (dim,). Equal arguments give equal bits.");
}

}  // namespace gradwire::python
