// Types of compressor parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/field.h"

namespace gradwire {

// A number of coordinates. It may be given as a share of d ("1%") until d is known.
struct Count {
  std::uint32_t count = 1;
  double share = 0;  // if > 0, the resolved `count` is round(share * d), at least 1
  bool operator==(const Count&) const = default;
  // Turns a share into a count. A count that was given directly may be larger than d.
  void resolve(std::size_t d);
};

// The number of clients of the run; 0 until it is known.
struct Clients {
  std::uint32_t count = 0;
  bool operator==(const Clients&) const = default;
};

// The p of a p-norm, 1 .. inf.
struct NormOrder {
  double p = 2;
  bool operator==(const NormOrder&) const = default;
};

// The number of rows of a vector of length d as a matrix. 0 until d is known; then the default is the largest
// divisor of d up to sqrt(d).
struct Rows {
  std::uint32_t count = 0;
  bool operator==(const Rows&) const = default;
};

template <>
struct TextCodec<Count> {
  static bool read(std::string_view text, Count& out);
  static std::string write(const Count& value);
  static constexpr std::string_view expected =
      "a count of at least 1, or a share of d like 1% (above 0%, at most 100%)";
};
template <>
struct TextCodec<Clients> {
  static bool read(std::string_view text, Clients& out);
  static std::string write(const Clients& value);
  static constexpr std::string_view expected = "the number of clients of the run, or omitted";
};
template <>
struct TextCodec<NormOrder> {
  static bool read(std::string_view text, NormOrder& out);
  static std::string write(const NormOrder& value);
  static constexpr std::string_view expected = "a number of at least 1, or inf";
};
template <>
struct TextCodec<Rows> {
  static bool read(std::string_view text, Rows& out);
  static std::string write(const Rows& value);
  static constexpr std::string_view expected = "a number of rows, or omitted for a nearly square matrix";
};

}  // namespace gradwire
