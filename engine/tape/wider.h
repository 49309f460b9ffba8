// Wider types for intermediate results, so that a result that fits its type is not lost on the way. For
// example, float and 16-bit numbers are summed in double.
#pragma once

#include <type_traits>

#include "engine/tape/var.h"

namespace gradwire {

// Calc is the type of elementary functions, and Sum that of sums and products.
template <class T>
struct WiderOf {
  using Calc = T;
  using Sum = T;
};
template <>
struct WiderOf<float> {
  using Calc = float;
  using Sum = double;
};
template <class T>
requires std::is_same_v<typename T::Compute, float>
struct WiderOf<T> {
  using Calc = float;
  using Sum = double;
};

template <class T>
using SumOf = typename WiderOf<T>::Sum;

template <class T>
GRADWIRE_INLINE SumOf<T> wide(const T& value) {
  return static_cast<SumOf<T>>(value);
}

}  // namespace gradwire
