// gw.Tape.
#include "gradwire/tape.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/core/arrays.h"
#include "python/core/bind.h"

namespace gradwire::python {
namespace {

using Var = Tape::Var;

struct PyTape {
  std::shared_ptr<Tape> tape;
};
// A handle that keeps its tape alive.
struct PyVar {
  Var var;
  std::shared_ptr<Tape> tape;
};
struct PyCheckpoint {
  std::shared_ptr<Tape> tape;
  Tape::Checkpoint at;
};

// Returns the operands of an operation on a list.
std::pair<std::vector<Var>, std::shared_ptr<Tape>> operands(const std::vector<PyVar>& list) {
  if (list.empty()) throw py::value_error("an operation on a list of scalars needs at least one");
  std::vector<Var> all;
  for (const PyVar& each : list) all.push_back(each.var);
  return {std::move(all), list.front().tape};
}

template <Var (*kOperation)(const Var&)>
PyVar unary(const PyVar& a) {
  return {kOperation(a.var), a.tape};
}

template <Var (*kOperation)(Tape::Vars)>
PyVar reduce(const std::vector<PyVar>& list) {
  auto [all, tape] = operands(list);
  return {kOperation(all), tape};
}

// Defines an operation on two scalars, on a scalar and a number, and on a number and a scalar.
template <class F>
void binary(py::class_<PyVar>& type, const char* name, const char* reversed, F f) {
  type.def(
      name,
      [f](const PyVar& a, const PyVar& b) {
        return PyVar{f(a.var, b.var), a.tape};
      },
      py::is_operator());
  type.def(
      name,
      [f](const PyVar& a, double k) {
        return PyVar{f(a.var, k), a.tape};
      },
      py::is_operator());
  if (reversed != nullptr)
    type.def(
        reversed,
        [f](const PyVar& a, double k) {
          return PyVar{f(k, a.var), a.tape};
        },
        py::is_operator());
}

}  // namespace

void bind_tape(py::module_& m) {
  py::class_<PyVar> var(m, "Var", "A scalar on a tape.");
  var.def_property_readonly("value", [](const PyVar& a) { return a.var.value(); })
      .def_property_readonly(
          "grad", [](const PyVar& a) { return a.var.grad(); },
          "The derivative of the last backward(); of parameters, the sum since they were zeroed.")
      .def(
          "backward", [](const PyVar& a, double seed) { a.tape->backward(a.var, seed); },
          py::arg("seed") = 1.0)
      .def("__neg__",
           [](const PyVar& a) {
             return PyVar{-a.var, a.tape};
           })
      .def("__float__", [](const PyVar& a) { return a.var.value(); })
      .def("__repr__",
           [](const PyVar& a) { return "Var(" + std::string(py::str(py::float_(a.var.value()))) + ")"; })
      .def("__abs__", &unary<&abs>)
      .def("relu", &unary<&relu>)
      .def("abs", &unary<&abs>)
      .def("tanh", &unary<&tanh>)
      .def("sigmoid", &unary<&sigmoid>)
      .def("exp", &unary<&exp>)
      .def("log", &unary<&log>)
      .def("sin", &unary<&sin>)
      .def("cos", &unary<&cos>)
      .def("sqrt", &unary<&sqrt>)
      .def("sqr", &unary<&sqr>);
  binary(var, "__add__", "__radd__", [](const auto& a, const auto& b) { return a + b; });
  binary(var, "__sub__", "__rsub__", [](const auto& a, const auto& b) { return a - b; });
  binary(var, "__mul__", "__rmul__", [](const auto& a, const auto& b) { return a * b; });
  binary(var, "__truediv__", "__rtruediv__", [](const auto& a, const auto& b) { return a / b; });
  binary(var, "__pow__", "__rpow__", [](const auto& a, const auto& b) { return pow(a, b); });
  binary(var, "max", nullptr, [](const auto& a, const auto& b) { return max(a, b); });
  binary(var, "min", nullptr, [](const auto& a, const auto& b) { return min(a, b); });

  py::class_<PyCheckpoint>(m, "Checkpoint",
                           "with tape.checkpoint(): ... forgets at its end what was recorded.")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](PyCheckpoint& self, const py::args&) { self.tape->rewind(self.at); })
      .def("rewind", [](PyCheckpoint& self) { self.tape->rewind(self.at); });

  py::class_<PyTape>(m, "Tape", "Derivatives of scalar expressions, recorded as they are computed.")
      .def(py::init([](std::size_t parameters) { return PyTape{std::make_shared<Tape>(parameters)}; }),
           py::arg("parameters") = 0)
      .def("variable",
           [](PyTape& t, double value) {
             return PyVar{t.tape->variable(value), t.tape};
           })
      .def("variables",
           [](PyTape& t, const std::vector<double>& values) {
             std::vector<PyVar> all;
             for (const Var& each : t.tape->variables(values)) all.push_back({each, t.tape});
             return all;
           })
      .def("constant",
           [](PyTape& t, double value) {
             return PyVar{t.tape->constant(value), t.tape};
           })
      .def(
          "parameters",
          [](PyTape& t) {
            std::vector<PyVar> all;
            for (const Var& each : t.tape->parameters()) all.push_back({each, t.tape});
            return all;
          },
          "Returns the parameters, with the values that they have now.")
      .def_property(
          "parameter_values",
          [](PyTape& t) { return NumPy().array_of(std::span<const double>(t.tape->parameter_values())); },
          [](PyTape& t, py::handle values) {
            copy_vector<double>(NumPy(), values, t.tape->parameter_values(), "parameter_values");
          },
          "A copy of the values, shape (parameters,); assign an array to set them.")
      .def_property_readonly("parameter_gradients",
                             [](PyTape& t) { return NumPy().array_of(t.tape->parameter_gradients()); })
      .def("zero_parameter_gradients", [](PyTape& t) { t.tape->zero_parameter_gradients(); })
      .def("checkpoint",
           [](PyTape& t) {
             return PyCheckpoint{t.tape, t.tape->checkpoint()};
           })
      .def_static("sum", &reduce<&reduce_sum>)
      .def_static("mean", &reduce<&reduce_mean>)
      .def_static("sum_of_squares", &reduce<&reduce_sum_of_squares>)
      .def_static("variance", &reduce<&variance>)
      .def_static("log_sum_exp", &reduce<&log_sum_exp>, "log sum_i exp(x_i); nothing overflows.")
      .def_static("softmax",
                  [](const std::vector<PyVar>& list) {
                    const auto [all, tape] = operands(list);
                    std::vector<PyVar> shares;
                    for (const Var& each : softmax(all)) shares.push_back({each, tape});
                    return shares;
                  })
      .def_static("inner_product", [](const std::vector<PyVar>& a, const std::vector<PyVar>& b) {
        const auto [left, tape] = operands(a);
        return PyVar{inner_product(left, operands(b).first), tape};
      });
}

}  // namespace gradwire::python
