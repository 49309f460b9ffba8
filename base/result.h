// A value or an error, with the member names of std::expected, which C++20 lacks. Code that reads bytes from
// peers uses it, because such code must not throw.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace gradwire {

enum class ErrorKind : std::uint8_t {
  kInvalid,  // the bytes, the file or the request is wrong: a retry fails again
  kSystem,   // the disk, the network or the system failed: a retry may succeed
  kForeign,  // the peer is not the one that this end trusts, such as a server of another authority
};

struct Error {
  std::string message;  // one line
  ErrorKind kind = ErrorKind::kInvalid;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}
  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};
using Status = Result<Unit>;

// Throws std::runtime_error with the message of the error, for callers that cannot continue after it.
inline void throw_if_failed(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

}  // namespace gradwire
