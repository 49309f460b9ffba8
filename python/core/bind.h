// The parts of the module, one file each.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace gradwire::python {

namespace py = pybind11;

void bind_experiment(py::module_& m);
void bind_result(py::module_& m);
void bind_compressor(py::module_& m);
void bind_user_compressor(py::module_& m);
void bind_algorithm(py::module_& m);
void bind_oracle(py::module_& m);
void bind_run(py::module_& m);
void bind_problem(py::module_& m);
void bind_tape(py::module_& m);
void bind_sweep(py::module_& m);
void bind_network(py::module_& m);
void bind_bench(py::module_& m);

}  // namespace gradwire::python
