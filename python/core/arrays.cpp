#include "python/core/arrays.h"

#include <string_view>

namespace gradwire::python {
namespace {

// Returns the format without a prefix that does not change it.
std::string_view format_of(const Buffer& view) {
  std::string_view format = view->format == nullptr ? "B" : view->format;
  if (!format.empty() && (format[0] == '<' || format[0] == '=' || format[0] == '@')) format.remove_prefix(1);
  return format;
}

std::string name_of_format(std::string_view format) {
  if (format.starts_with('>') || format.starts_with('!'))
    return "'" + std::string(format) + "', which has another byte order";
  if (format.empty()) return "uint8";
  switch (format[0]) {
    case 'd': return "float64";
    case 'f': return "float32";
    case 'e': return "float16";
    case 'g': return "longdouble";
    case '?': return "bool";
    case 'B': return "uint8";
    case 'O': return "object";
    case 'I': return "uint32";
    case 'i': return "int32";
    case 'l':
    case 'q': return "int64";
    case 'L':
    case 'Q': return "uint64";
    default: return "format '" + std::string(format) + "'";
  }
}

std::string shape_of(const Py_buffer* view) {
  std::string text = "(";
  for (int k = 0; k < view->ndim; ++k) text += (k > 0 ? ", " : "") + std::to_string(view->shape[k]);
  return text + (view->ndim == 1 ? ",)" : ")");
}

template <class T>
void check(const Buffer& view, std::size_t length, const char* what) {
  const std::string_view format = format_of(view);
  if (format.size() != 1 || format[0] != NumberType<T>::kFormat)
    throw py::type_error(std::string(what) + " has type " + name_of_format(format) + "; it must have type " +
                         NumberType<T>::kName + ", the precision of the run");
  if (view->ndim == 1 && (length == kAnyLength || view->shape[0] == static_cast<Py_ssize_t>(length))) return;
  const std::string wanted =
      length == kAnyLength ? "one dimension" : "shape (" + std::to_string(length) + ",)";
  throw py::value_error(std::string(what) + " has shape " + shape_of(view.operator->()) + "; it must have " +
                        wanted);
}

// Returns the bytes from one number of a vector to the next. Arrays of ctypes do not say it.
template <class T>
Py_ssize_t stride_of(const Buffer& view) {
  return view->strides == nullptr ? static_cast<Py_ssize_t>(sizeof(T)) : view->strides[0];
}

template <class T>
void copy(const Buffer& view, std::span<T> to) {
  const char* from = static_cast<const char*>(view->buf);
  const Py_ssize_t stride = stride_of<T>(view);
  if (to.empty()) return;
  if (stride == static_cast<Py_ssize_t>(sizeof(T))) {
    std::memcpy(to.data(), from, to.size_bytes());
    return;
  }
  for (std::size_t j = 0; j < to.size(); ++j, from += stride) std::memcpy(&to[j], from, sizeof(T));
}

// Calls use(view) with the checked buffer of a vector.
template <class T, class Use>
void with_vector(const NumPy& numpy, py::handle object, std::size_t length, const char* what, Use&& use) {
  if (object.is_none())
    throw py::type_error(std::string(what) + " is None; it must be a vector of type " + NumberType<T>::kName);
  py::object array = PyObject_CheckBuffer(object.ptr()) ? py::reinterpret_borrow<py::object>(object)
                                                        : numpy.as_array(object);
  const Buffer view(array, PyBUF_FORMAT | PyBUF_STRIDES);
  check<T>(view, length, what);
  use(view);
}

}  // namespace

NumPy::NumPy() {
  const py::module_ numpy = py::module_::import("numpy");
  empty_ = numpy.attr("empty");
  as_array_ = numpy.attr("asarray");
  array_type_ = numpy.attr("ndarray");
  float64_ = numpy.attr("dtype")("float64");
  float32_ = numpy.attr("dtype")("float32");
  uint32_ = numpy.attr("dtype")("uint32");
}

template <>
py::object NumPy::empty<double>(std::size_t n) const {
  return empty_(n, float64_);
}
template <>
py::object NumPy::empty<float>(std::size_t n) const {
  return empty_(n, float32_);
}
template <>
py::object NumPy::empty<std::uint32_t>(std::size_t n) const {
  return empty_(n, uint32_);
}

template <class T>
bool is_vector_of(const Buffer& view, std::size_t n) {
  const std::string_view format = format_of(view);
  return format.size() == 1 && format[0] == NumberType<T>::kFormat && view->ndim == 1 &&
         view->shape[0] == static_cast<Py_ssize_t>(n) &&
         (n < 2 || stride_of<T>(view) == static_cast<Py_ssize_t>(sizeof(T)));
}

template <class T>
std::vector<T> vector_of(const NumPy& numpy, py::handle object, std::size_t length, const char* what) {
  std::vector<T> numbers;
  with_vector<T>(numpy, object, length, what, [&](const Buffer& view) {
    numbers.resize(static_cast<std::size_t>(view->shape[0]));
    copy<T>(view, numbers);
  });
  return numbers;
}

template <class T>
void copy_vector(const NumPy& numpy, py::handle object, std::span<T> to, const char* what) {
  with_vector<T>(numpy, object, to.size(), what, [&](const Buffer& view) { copy<T>(view, to); });
}

template bool is_vector_of<float>(const Buffer&, std::size_t);
template bool is_vector_of<double>(const Buffer&, std::size_t);
template bool is_vector_of<std::uint32_t>(const Buffer&, std::size_t);
template std::vector<float> vector_of(const NumPy&, py::handle, std::size_t, const char*);
template std::vector<double> vector_of(const NumPy&, py::handle, std::size_t, const char*);
template std::vector<std::uint64_t> vector_of(const NumPy&, py::handle, std::size_t, const char*);
template std::vector<std::uint32_t> vector_of(const NumPy&, py::handle, std::size_t, const char*);
template void copy_vector(const NumPy&, py::handle, std::span<float>, const char*);
template void copy_vector(const NumPy&, py::handle, std::span<double>, const char*);

}  // namespace gradwire::python
