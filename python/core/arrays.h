// Arrays of Python, by the buffer protocol alone: the layout of NumPy's own structures differs between its
// versions. Everything here needs the GIL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <pybind11/pybind11.h>
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
  // Returns true for arrays of NumPy's own class. Derived classes may have more than numbers, such as a mask.
  bool is_array(py::handle object) const { return py::type::handle_of(object).is(array_type_); }

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

// Returns true if the buffer has n numbers of type T, one after the other.
template <class T>
bool is_vector_of(const Buffer& view, std::size_t n);

// An array that the module fills before each call of a Python function. It is used again, unless Python code
// has kept a reference to it, or to a part of it: so what was kept does not change. Python code may have
// changed its memory, its shape or its type, so it is looked at before each use.
template <class T>
class ReusedArray {
 public:
  explicit ReusedArray(bool is_writable) : is_writable_(is_writable) {}

  // Returns the array with room for n numbers.
  py::object of_size(const NumPy& numpy, std::size_t n) { return filled(numpy, n, nullptr); }
  py::object with(const NumPy& numpy, std::span<const T> numbers) {
    return filled(numpy, numbers.size(), numbers.data());
  }

 private:
  py::object filled(const NumPy& numpy, std::size_t n, const T* numbers) {
    constexpr Py_ssize_t kOurs = 1;
    if (array_ && Py_REFCNT(array_.ptr()) == kOurs) {
      const Buffer view(array_, PyBUF_FORMAT | PyBUF_STRIDES);
      if (is_vector_of<T>(view, n) && (view->readonly == 0) == is_writable_) {
        fill(view, n, numbers);
        return array_;
      }
    }
    array_ = numpy.empty<T>(n);
    if (!is_writable_) array_.attr("flags").attr("writeable") = false;
    fill(Buffer(array_, PyBUF_SIMPLE), n, numbers);
    return array_;
  }
  // Python code cannot write to a read-only array, but the module can.
  static void fill(const Buffer& view, std::size_t n, const T* numbers) {
    if (numbers != nullptr && n > 0) std::memcpy(view->buf, numbers, n * sizeof(T));
  }

  bool is_writable_;
  py::object array_;
};

}  // namespace gradwire::python
