#include "python/core/callbacks.h"

#include <string_view>

namespace gradwire::python {
namespace {

// The thread state of a thread that C++ started.
class KeptThreadState {
 public:
  KeptThreadState() {
    if (PyGILState_GetThisThreadState() != nullptr) return;
    PyGILState_Ensure();
    state_ = PyEval_SaveThread();
  }
  ~KeptThreadState() {
    if (state_ == nullptr || !Py_IsInitialized()) return;
    PyEval_RestoreThread(state_);
    PyGILState_Release(PyGILState_UNLOCKED);
  }
  KeptThreadState(const KeptThreadState&) = delete;
  KeptThreadState& operator=(const KeptThreadState&) = delete;

 private:
  PyThreadState* state_ = nullptr;
};

}  // namespace

Gil::Gil() {
  thread_local const KeptThreadState kept;
  state_ = PyGILState_Ensure();
}

namespace {

// Adds a note to an exception, where the interpreter has notes (Python 3.11).
void add_note(const py::object& exception, const std::string& text) {
  if (py::hasattr(exception, "add_note")) exception.attr("add_note")(text);
}

}  // namespace

void Trouble::keep(py::error_already_set& error) {
  error.restore();
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != nullptr) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  py::object raised = py::reinterpret_steal<py::object>(value);
  if (!kept_)
    kept_ = std::move(raised);
  else if (!kept_.is(raised))
    add_note(kept_, "another thread raised " + std::string(py::repr(raised)));
}

void Trouble::raise_in_python() {
  const py::object raised = std::exchange(kept_, py::object());
  PyErr_SetObject(py::type::handle_of(raised).ptr(), raised.ptr());
  throw py::error_already_set();
}

void Trouble::raise_if_any(const std::string& what_else) {
  if (!kept_) return;
  std::string_view rest = what_else;
  if (rest.starts_with(PythonRaised::kWhat)) {
    rest.remove_prefix(std::string_view(PythonRaised::kWhat).size());
    if (rest.starts_with("; ")) add_note(kept_, std::string(rest.substr(2)));
  }
  raise_in_python();
}

}  // namespace gradwire::python
