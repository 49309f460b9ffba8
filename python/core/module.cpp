// The module gradwire._core. The files of python/gradwire/ wrap it.
#include <exception>

#include "gradwire/bad_input.h"
#include "gradwire/list.h"
#include "gradwire/version.h"
#include "python/core/bind.h"
#include "python/core/lifetime.h"

namespace gradwire::python {
namespace {

// Raises an exception class of gradwire/_errors.py.
void raise(const char* name, const std::exception& error) {
  const py::object type = py::module_::import("gradwire._errors").attr(name);
  PyErr_SetString(type.ptr(), error.what());
}

void translate(std::exception_ptr error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const DataError& data) {
    raise("DataError", data);
  } catch (const BadInput& input) {
    raise("ExperimentError", input);
  } catch (const py::builtin_exception& python) {
    throw;
  } catch (const std::runtime_error& run) {
    raise("RunError", run);
  }
}

// Returns a column of a list for each member.
template <class Entry, class... Members>
py::dict table(const std::vector<Entry>& entries, const std::pair<const char*, Members>&... columns) {
  py::dict result;
  const auto add = [&](const char* name, auto member) {
    py::list column;
    for (const Entry& entry : entries) column.append(py::cast(entry.*member));
    result[name] = column;
  };
  (add(columns.first, columns.second), ...);
  return result;
}

void bind_lists(py::module_& m) {
  m.def("algorithms", [] {
    const std::vector<AlgorithmEntry> all = list_algorithms();
    py::list parameters;
    for (const AlgorithmEntry& entry : all) {
      std::string text;
      for (const KeyEntry& parameter : entry.parameters)
        text += (text.empty() ? "" : ", ") + parameter.name +
                (parameter.fallback.empty() ? "" : "=" + parameter.fallback);
      parameters.append(text);
    }
    py::dict columns = table(
        all, std::pair("name", &AlgorithmEntry::name), std::pair("summary", &AlgorithmEntry::summary),
        std::pair("reference", &AlgorithmEntry::reference),
        std::pair("compressors", &AlgorithmEntry::compressors),
        std::pair("participation", &AlgorithmEntry::participation),
        std::pair("batch", &AlgorithmEntry::batch), std::pair("asynchronous", &AlgorithmEntry::asynchronous));
    columns["parameters"] = parameters;
    return columns;
  });
  m.def("compressors", [] {
    return table(list_compressors(), std::pair("name", &CompressorEntry::name),
                 std::pair("parameters", &CompressorEntry::parameters),
                 std::pair("summary", &CompressorEntry::summary),
                 std::pair("constants", &CompressorEntry::constants));
  });
  m.def("problems", [] {
    return table(list_problems(), std::pair("name", &ProblemEntry::name),
                 std::pair("summary", &ProblemEntry::summary), std::pair("reads", &ProblemEntry::reads),
                 std::pair("exact_constants", &ProblemEntry::exact_constants));
  });
  // A row for each parameter of each algorithm.
  m.def("parameters", [] {
    py::list algorithms, names, meanings;
    for (const AlgorithmEntry& entry : list_algorithms())
      for (const KeyEntry& parameter : entry.parameters) {
        algorithms.append(entry.name);
        names.append(parameter.name);
        meanings.append(parameter.meaning);
      }
    py::dict columns;
    columns["algorithm"] = algorithms;
    columns["name"] = names;
    columns["meaning"] = meanings;
    return columns;
  });
  m.def("keys", [] {
    return table(list_keys(), std::pair("name", &KeyEntry::name), std::pair("type", &KeyEntry::type),
                 std::pair("default", &KeyEntry::fallback), std::pair("meaning", &KeyEntry::meaning));
  });
}

void bind(py::module_& m) {
  m.attr("__version__") = std::string(version());
  py::register_exception_translator(&translate);
  bind_lifetime(m);
  bind_lists(m);
  bind_experiment(m);
  bind_result(m);
  bind_compressor(m);
  bind_user_compressor(m);
  bind_algorithm(m);
  bind_oracle(m);
  bind_problem(m);
  bind_run(m);
  bind_tape(m);
  bind_sweep(m);
  bind_network(m);
  bind_bench(m);
}

// Returns false, with ImportError set, unless this is the main interpreter of the process.
bool check_interpreter() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return true;
  PyErr_SetString(PyExc_ImportError,
                  "gradwire works in the main interpreter of a process alone; use a process in place of a "
                  "subinterpreter");
  return false;
}

PyObject* check_interpreter_for_python(PyObject*, PyObject*) {
  if (!check_interpreter()) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"check_interpreter", &check_interpreter_for_python, METH_NOARGS,
                            "check_interpreter() -> None\n\n"
                            "Raises ImportError in a subinterpreter, to which Python copies this module."},
                           {nullptr, nullptr, 0, nullptr}};

// As PYBIND11_MODULE makes it.
PyObject* make_module() {
  PYBIND11_CHECK_PYTHON_VERSION
  PYBIND11_ENSURE_INTERNALS_READY
  static py::module_::module_def definition;
  py::module_ m = py::module_::create_extension_module("_core", nullptr, &definition);
  try {
    if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw py::error_already_set();
    bind(m);
    return m.ptr();
  }
  PYBIND11_CATCH_INIT_EXCEPTIONS
}

}  // namespace

}  // namespace gradwire::python

// pybind11 keeps one set of types per process, so it is not even set up in a subinterpreter.
extern "C" PYBIND11_EXPORT PyObject* PyInit__core() {
  return gradwire::python::check_interpreter() ? gradwire::python::make_module() : nullptr;
}
