// gw.Problem and its oracles.
#include "gradwire/problem.h"

#include <optional>
#include <vector>

#include "python/core/arrays.h"
#include "python/core/bind.h"
#include "python/core/problem_oracle.h"

namespace gradwire::python {
namespace {

using Numbers = std::vector<double>;

// Calls f(real), with a number of the precision of the array.
template <class F>
py::object in_precision(bool is_fp32, F&& f) {
  return is_fp32 ? f(float()) : f(double());
}

// Lets the oracle compute f(oracle, x, samples) without the GIL.
template <class Real, class F>
auto compute(ProblemOracle& self, const py::object& x, const py::object& batch, F&& f) {
  const NumPy numpy;
  const auto samples = vector_of<std::uint32_t>(numpy, batch, kAnyLength, "batch");
  const auto point = vector_of<Real>(numpy, x, kAnyLength, "x");
  const py::gil_scoped_release unlocked;
  return self.with<Real>([&](Oracle<Real>& oracle) {
    if (point.size() != oracle.dim())
      throw std::invalid_argument("x has shape (" + std::to_string(point.size()) +
                                  ",); it must have shape (" + std::to_string(oracle.dim()) + ",)");
    for (const std::uint32_t sample : samples)
      if (sample >= oracle.sample_count())
        throw std::invalid_argument("batch: sample " + std::to_string(sample) +
                                    " does not exist; the client has " +
                                    std::to_string(oracle.sample_count()));
    return f(oracle, std::span<const Real>(point), Batch(samples));
  });
}

template <class Real>
py::object array_of(const std::vector<Real>& numbers) {
  return NumPy().array_of(std::span(numbers));
}

}  // namespace

void bind_problem(py::module_& m) {
  py::class_<ProblemOracle>(m, "ProblemOracle")
      .def("samples",
           [](ProblemOracle& self) {
             return self.with<double>([](Oracle<double>& oracle) { return oracle.sample_count(); });
           })
      .def("loss_and_gradient",
           [](ProblemOracle& self, const py::object& x, const py::object& batch, bool is_fp32) {
             return in_precision(is_fp32, [&](auto real) -> py::object {
               using Real = decltype(real);
               std::vector<Real> gradient;
               const Real loss =
                   compute<Real>(self, x, batch, [&](Oracle<Real>& oracle, auto point, Batch samples) {
                     gradient.resize(oracle.dim());
                     return oracle.loss_and_gradient(point, samples, gradient);
                   });
               return py::make_tuple(static_cast<double>(loss), array_of(gradient));
             });
           })
      .def("loss",
           [](ProblemOracle& self, const py::object& x, const py::object& batch, bool is_fp32) {
             return in_precision(is_fp32, [&](auto real) -> py::object {
               using Real = decltype(real);
               return py::float_(
                   compute<Real>(self, x, batch, [](Oracle<Real>& oracle, auto point, Batch samples) {
                     return static_cast<double>(oracle.loss(point, samples));
                   }));
             });
           })
      .def("score",
           [](ProblemOracle& self, const py::object& x, const py::object& batch, bool is_fp32) {
             return in_precision(is_fp32, [&](auto real) -> py::object {
               using Real = decltype(real);
               const auto score = compute<Real>(self, x, batch, [](Oracle<Real>& oracle, auto point, Batch) {
                 return oracle.score(point);
               });
               if (!score) return py::none();
               return py::make_tuple(score->correct, score->tested);
             });
           })
      .def("hessian", [](ProblemOracle& self, const py::object& x, const py::object& batch, bool is_fp32) {
        return in_precision(is_fp32, [&](auto real) -> py::object {
          using Real = decltype(real);
          std::vector<Real> upper;
          const bool has_hessian =
              compute<Real>(self, x, batch, [&](Oracle<Real>& oracle, auto point, Batch) {
                upper.resize(upper_size(oracle.dim()));
                return oracle.hessian(point, upper);
              });
          return has_hessian ? array_of(upper) : py::none();
        });
      });
  py::class_<Problem>(m, "Problem")
      .def(py::init(
          [](const Experiment& experiment, const std::optional<Data>& data, const std::optional<Data>& test) {
            const py::gil_scoped_release unlocked;
            return Problem(experiment, data, test);
          }))
      .def("dim", &Problem::dim)
      .def("clients", &Problem::clients)
      .def("start", [](const Problem& self) { return array_of(self.start()); })
      .def("weights", [](const Problem& self) { return array_of(self.weights()); })
      .def("oracle", [](const Problem& self,
                        std::uint32_t client) { return std::make_unique<ProblemOracle>(self, client); })
      .def("loss_and_gradient",
           [](const Problem& self, const py::object& x) {
             const auto point = vector_of<double>(NumPy(), x, self.dim(), "x");
             Numbers gradient(self.dim());
             double loss = 0;
             {
               const py::gil_scoped_release unlocked;
               loss = self.loss_and_gradient(point, gradient);
             }
             return py::make_tuple(loss, array_of(gradient));
           })
      .def("constants",
           [](const Problem& self) {
             std::optional<ProblemConstants> found;
             {
               const py::gil_scoped_release unlocked;
               found = self.constants();
             }
             return py::make_tuple(found->L, array_of(found->L_i), found->mu, found->estimated);
           })
      .def("f_star", &Problem::f_star, py::call_guard<py::gil_scoped_release>());
}

}  // namespace gradwire::python
