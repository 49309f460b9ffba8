// gw.Result on a TrainResult.
#include "gradwire/result.h"

#include <string>

#include "python/core/arrays.h"
#include "python/core/bind.h"

namespace gradwire::python {

void bind_result(py::module_& m) {
  py::class_<TrainResult>(m, "TrainResult")
      .def_static("read", [](const std::string& folder) { return TrainResult::read(folder); })
      .def_static("columns", &TrainResult::columns)
      .def("model", [](const TrainResult& self) { return NumPy().array_of(self.model()); })
      .def("metrics",
           [](const TrainResult& self) {
             const NumPy numpy;
             py::dict columns;
             for (const std::string& name : TrainResult::columns()) {
               const std::vector<double> numbers = self.metrics(name);
               columns[py::str(name)] = numpy.array_of(std::span(numbers));
             }
             return columns;
           })
      .def("outcome", &TrainResult::outcome)
      .def("trouble", &TrainResult::trouble)
      .def("rounds", &TrainResult::rounds)
      .def("seconds", &TrainResult::seconds)
      .def("warnings", &TrainResult::warnings)
      .def("experiment", &TrainResult::experiment)
      .def("resolved", &TrainResult::resolved)
      .def("summary", &TrainResult::summary)
      .def(
          "save",
          [](const TrainResult& self, const std::string& folder, bool overwrite) {
            self.save(folder, overwrite);
          },
          py::call_guard<py::gil_scoped_release>());
}

}  // namespace gradwire::python
