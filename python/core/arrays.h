// Arrays of Python, by the buffer protocol alone: the layout of NumPy's own structures differs between its
// versions. Everything here needs the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace gradwire::python {

namespace py = pybind11;

template <class T>
struct NumberType;
template <>
struct NumberType<double> {
  static constexpr char kFormat = 'd';
  static constexpr const char* kName = "float64";
};
template <>
struct NumberType<float> {
  static constexpr char kFormat = 'f';
  static constexpr const char* kName = "float32";
};
template <>
struct NumberType<std::uint32_t> {
  static constexpr char kFormat = 'I';
  static constexpr const char* kName = "uint32";
};
template <>
struct NumberType<std::uint64_t> {
  static constexpr char kFormat = 'L';
  static constexpr const char* kName = "uint64";
};

// An open buffer of a Python object.
class Buffer {
 public:
  Buffer() = default;
  Buffer(py::handle object, int flags) { open(object, flags); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { close(); }

  void open(py::handle object, int flags) {
    close();
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw py::error_already_set();
    is_open_ = true;
  }
  void close() {
    if (is_open_) PyBuffer_Release(&view_);
    is_open_ = false;
  }
  const Py_buffer* operator->() const { return &view_; }

 private:
  Py_buffer view_{};
  bool is_open_ = false;
};

// Functions of NumPy. They are looked up once per run, and never kept in a static variable.
class NumPy {
 public:
  NumPy();

  // Returns a new array, shape (n), whose numbers are not set.
  template <class T>
  py::object empty(std::size_t n) const;
  // Returns a new array with these numbers.
  template <class T>
  py::object array_of(std::span<const T> numbers) const {
    py::object array = empty<T>(numbers.size());
    const Buffer to(array, PyBUF_WRITABLE);
    if (!numbers.empty()) std::memcpy(to->buf, numbers.data(), numbers.size_bytes());
    return array;
  }
  py::object as_array(py::handle object) const { return as_array_(object); }
  bool is_array(py::handle object) const { return py::isinstance(object, array_type_); }

 private:
  py::object empty_, as_array_, array_type_, float64_, float32_, uint32_;
};

// Returns the numbers of a vector. Anything without a buffer becomes an array first. Raises TypeError if they
// are not of type T, and ValueError for other shapes; `what` names the vector. `any_length` lets it have any
// length, and not `length` alone.
inline constexpr std::size_t kAnyLength = static_cast<std::size_t>(-1);
template <class T>
std::vector<T> vector_of(const NumPy& numpy, py::handle object, std::size_t length, const char* what);
// Copies them to `to`, which has the length that the vector must have.
template <class T>
void copy_vector(const NumPy& numpy, py::handle object, std::span<T> to, const char* what);

// An array that the module fills before each call of a Python function. It is used again, unless Python code
// has kept a reference to it, or to a part of it: so what was kept does not change.
template <class T>
class ReusedArray {
 public:
  explicit ReusedArray(bool is_writable) : is_writable_(is_writable) {}

  // Returns the array with room for n numbers.
  py::handle of_size(const NumPy& numpy, std::size_t n) {
    constexpr Py_ssize_t kOurs = 2;  // that of array_, and that of buffer_
    if (array_ && size_ == n && Py_REFCNT(array_.ptr()) == kOurs) return array_;
    buffer_.close();
    array_ = numpy.empty<T>(n);
    buffer_.open(array_, PyBUF_WRITABLE);
    if (!is_writable_) array_.attr("flags").attr("writeable") = false;
    size_ = n;
    return array_;
  }
  py::handle with(const NumPy& numpy, std::span<const T> numbers) {
    of_size(numpy, numbers.size());
    if (!numbers.empty()) std::memcpy(buffer_->buf, numbers.data(), numbers.size_bytes());
    return array_;
  }
  std::span<const T> numbers() const { return {static_cast<const T*>(buffer_->buf), size_}; }

 private:
  bool is_writable_;
  py::object array_;
  Buffer buffer_;
  std::size_t size_ = 0;
};

}  // namespace gradwire::python
