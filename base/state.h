// One list of fields per state, `static void fields(auto& self, auto&& visit)`, serves saving, loading and
// comparing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gradwire {

// The bytes that a Saver will have.
class Sizer {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(const T&) { bytes_ += sizeof(T); }
  template <class T>
  void operator()(const std::vector<T>& v) {
    bytes_ += sizeof(std::uint64_t);
    if constexpr (std::is_arithmetic_v<T>) {
      bytes_ += v.size() * sizeof(T);
    } else {
      for (const T& e : v) (*this)(e);
    }
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

class Saver {
 public:
  explicit Saver(std::size_t bytes = 0) { bytes_.reserve(bytes); }
  template <class T>
  requires std::is_arithmetic_v<T>
  void operator()(const T& v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  template <class T>
  void operator()(const std::vector<T>& v) {
    (*this)(static_cast<std::uint64_t>(v.size()));
    if constexpr (std::is_arithmetic_v<T>) {
      bytes_.append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
    } else {
      for (const T& e : v) (*this)(e);
    }
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Checks every size before it allocates; done() tells whether all bytes were there and used.
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
