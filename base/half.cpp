#include "base/half.h"

#include <cstddef>

namespace gradwire {
namespace {

template <class From, class To>
void convert_each(std::span<const From> from, std::span<To> to) {
  const From* __restrict__ x = from.data();
  To* __restrict__ y = to.data();
  const std::size_t count = to.size();
  for (std::size_t i = 0; i < count; ++i) y[i] = static_cast<To>(x[i]);
}

}  // namespace

void convert(std::span<const float> from, std::span<Float16> to) { convert_each(from, to); }
void convert(std::span<const double> from, std::span<Float16> to) { convert_each(from, to); }
void convert(std::span<const Float16> from, std::span<float> to) { convert_each(from, to); }
void convert(std::span<const Float16> from, std::span<double> to) { convert_each(from, to); }
void convert(std::span<const float> from, std::span<BFloat16> to) { convert_each(from, to); }
void convert(std::span<const double> from, std::span<BFloat16> to) { convert_each(from, to); }
void convert(std::span<const BFloat16> from, std::span<float> to) { convert_each(from, to); }
void convert(std::span<const BFloat16> from, std::span<double> to) { convert_each(from, to); }

}  // namespace gradwire
