// The module gradwire._core. The files of python/gradwire/ wrap it.
#include "gradwire/bad_input.h"
#include "gradwire/list.h"
#include "gradwire/version.h"

#include <exception>

#include "python/core/bind.h"

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
    py::dict columns = table(all, std::pair("name", &AlgorithmEntry::name),
                 std::pair("summary", &AlgorithmEntry::summary),
                 std::pair("reference", &AlgorithmEntry::reference),
                 std::pair("compressors", &AlgorithmEntry::compressors),
                 std::pair("participation", &AlgorithmEntry::participation),
                 std::pair("batch", &AlgorithmEntry::batch),
                 std::pair("asynchronous", &AlgorithmEntry::asynchronous));
    columns["parameters"] = parameters;
    return columns;
  });
  m.def("compressors", [] {
    return table(list_compressors(), std::pair("name", &CompressorEntry::name),
                 std::pair("parameters", &CompressorEntry::parameters),
                 std::pair("summary", &CompressorEntry::summary),
                 std::pair("constants", &CompressorEntry::constants));
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

}  // namespace

PYBIND11_MODULE(_core, m) {
  m.attr("__version__") = std::string(version());
  py::register_exception_translator(&translate);
  bind_lists(m);
  bind_experiment(m);
  bind_result(m);
  bind_compressor(m);
  bind_user_compressor(m);
  bind_algorithm(m);
  bind_problem(m);
  bind_run(m);
  bind_tape(m);
  bind_sweep(m);
  bind_network(m);
}

}  // namespace gradwire::python
