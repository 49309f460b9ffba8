// gw.Experiment and gw.Data on the experiments and samples of the library.
#include "gradwire/experiment.h"

#include <string>
#include <utility>
#include <vector>

#include "gradwire/data.h"
#include "python/core/arrays.h"
#include "python/core/bind.h"

namespace gradwire::python {
namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

KeyValues key_values(const Texts& texts) {
  KeyValues keys;
  for (const auto& [key, value] : texts) keys.emplace_back(key, value);
  return keys;
}

Texts settings(const Experiment& experiment) {
  Texts texts;
  for (const auto& [key, value] : experiment.settings()) texts.emplace_back(key, value.text());
  return texts;
}

Data dense(std::size_t columns, py::handle features, py::handle labels) {
  const NumPy numpy;
  return Data::dense(columns, vector_of<double>(numpy, features, kAnyLength, "the features"),
                     vector_of<double>(numpy, labels, kAnyLength, "the labels"));
}

Data sparse(std::size_t columns, py::handle row_start, py::handle column, py::handle value,
            py::handle labels) {
  const NumPy numpy;
  return Data::sparse(columns, vector_of<std::uint64_t>(numpy, row_start, kAnyLength, "indptr"),
                      vector_of<std::uint32_t>(numpy, column, kAnyLength, "indices"),
                      vector_of<double>(numpy, value, kAnyLength, "data"),
                      vector_of<double>(numpy, labels, kAnyLength, "the labels"));
}

}  // namespace

void bind_experiment(py::module_& m) {
  py::class_<Experiment>(m, "Experiment")
      .def_static("load", [](const std::string& file) { return Experiment::load(file); })
      .def_static("parse", [](const std::string& toml,
                              const std::string& name) { return Experiment::parse(toml, name); })
      .def_static("from_keys", [](const Texts& keys) { return Experiment::from(key_values(keys)); })
      .def("with_keys", [](const Experiment& self, const Texts& keys) { return self.with(key_values(keys)); })
      .def("get", [](const Experiment& self, const std::string& key) { return self.get(key); })
      .def("settings", &settings)
      .def("name", &Experiment::name)
      .def("clients", &Experiment::clients)
      .def("toml", &Experiment::toml)
      .def("warnings", &Experiment::warnings);
  py::class_<Data>(m, "Data")
      .def_static("dense", &dense)
      .def_static("sparse", &sparse)
      .def_static("text", &Data::text);
}

}  // namespace gradwire::python
