#include "python/core/callbacks.h"

#include <cstdio>
#include <unistd.h>
#include <utility>

namespace gradwire::python {
namespace {

constexpr const char* kOfParent =
    "this run, client or server belongs to the process that started it; start it in the child, or use the "
    "start method spawn";

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

py::object own_method(const py::handle& object, const char* module, const char* base, const char* name) {
  const py::object method = object.attr(name);
  const py::object inherited = py::module_::import(module).attr(base).attr(name);
  return py::getattr(method, "__func__", py::none()).is(inherited) ? py::object(py::none()) : method;
}

void Trouble::keep(py::error_already_set& error, const std::string& place) {
  error.restore();
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace != nullptr) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  py::object raised = py::reinterpret_steal<py::object>(value);
  stop.request_stop();
  const bool has_notes = py::hasattr(raised, "add_note");  // from Python 3.11 on
  if (!kept_) {
    kept_ = std::move(raised);
    if (has_notes && !place.empty()) kept_.attr("add_note")(place);
  } else if (!kept_.is(raised) && has_notes) {
    kept_.attr("add_note")("another thread raised " + std::string(py::repr(raised)));
  }
}

void Trouble::check_lifetime() const {
  if (is_of_parent()) throw std::runtime_error(kOfParent);
  if (!end_.stop_requested()) return;
  PyErr_SetNone(PyExc_SystemExit);
  throw py::error_already_set();
}

void Trouble::end_child() {
  std::fprintf(stderr, "gradwire: %s\n", kOfParent);
  _exit(1);
}

void Trouble::raise_if_any() {
  if (!kept_) return;
  const py::object raised = std::exchange(kept_, py::object());
  PyErr_SetObject(py::type::handle_of(raised).ptr(), raised.ptr());
  throw py::error_already_set();
}

}  // namespace gradwire::python
