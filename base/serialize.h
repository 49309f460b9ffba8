// Serialization. A state lists its fields once, in `static void fields(auto& self, auto&& visit)`. This list
// is used to save, load and compare the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gradwire {

// The encoding of fields: a number is stored as in memory, a vector as its size (u64) and then its elements.
// The sink gets numbers by number(bytes), and the elements of a vector by numbers(bytes), a view of the
// vector.
template <class Sink>
class FieldBytes {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(const T& v) { sink().number({reinterpret_cast<const char*>(&v), sizeof v}); }
  template <class T>
  void operator()(const std::vector<T>& v) {
    (*this)(static_cast<std::uint64_t>(v.size()));
    if constexpr (std::is_arithmetic_v<T>) {
      sink().numbers({reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T)});
    } else {
      for (const T& e : v) (*this)(e);
    }
  }

 private:
  Sink& sink() { return static_cast<Sink&>(*this); }
};

// Counts the bytes that a Saver will write.
class Sizer : public FieldBytes<Sizer> {
 public:
  void number(std::string_view bytes) { bytes_ += bytes.size(); }
  void numbers(std::string_view bytes) { bytes_ += bytes.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

class Saver : public FieldBytes<Saver> {
 public:
  explicit Saver(std::size_t bytes = 0) { bytes_.reserve(bytes); }
  void number(std::string_view bytes) { bytes_ += bytes; }
  void numbers(std::string_view bytes) { bytes_ += bytes; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what a Saver wrote. Checks every size before it allocates. done() is true if all bytes were present
// and used.
class Loader {
 public:
  explicit Loader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(T& v) { raw(&v, sizeof v); }
  template <class T>
  void operator()(std::vector<T>& v) {
    std::uint64_t size = 0;
    (*this)(size);
    if (size > rest_.size() / (std::is_arithmetic_v<T> ? sizeof(T) : sizeof(std::uint64_t))) good_ = false;
    if (!good_) return;
    v.resize(size);
    if constexpr (std::is_arithmetic_v<T>) {
      raw(v.data(), size * sizeof(T));
    } else {
      for (T& e : v) (*this)(e);
    }
  }
  bool done() const { return good_ && rest_.empty(); }

 private:
  void raw(void* to, std::size_t size) {
    good_ = good_ && size <= rest_.size();
    if (!good_ || size == 0) return;
    std::memcpy(to, rest_.data(), size);
    rest_.remove_prefix(size);
  }
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace gradwire
