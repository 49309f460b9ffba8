#include "compressors/natural.h"

#include <bit>
#include <limits>
#include <type_traits>

namespace gradwire {

template <class Real>
Packed<Real> Natural::round(std::span<Real> v, const RngKey& key, Scratch<Real>&) const {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  constexpr int kMantissa = std::numeric_limits<Real>::digits - 1;
  constexpr Bits kFraction = (Bits{1} << kMantissa) - 1;
  constexpr Bits kExponent = (~Bits{0} >> 1) & ~kFraction;
  constexpr Bits kLargest = kExponent - (Bits{1} << kMantissa);
  RngStream stream(key);
  for (Real& t : v) {
    const Bits bits = std::bit_cast<Bits>(t);
    const Bits draw = static_cast<Bits>(stream.next() >> (64 - kMantissa));
    Bits exponent = bits & kExponent;
    // 2^e (1 + f) goes up with probability f; a subnormal f 2^e_min goes to 2^e_min with probability f.
    if (draw < (bits & kFraction) && exponent < kLargest) exponent += Bits{1} << kMantissa;
    t = std::bit_cast<Real>(static_cast<Bits>((bits & ~(kFraction | kExponent)) | exponent));
  }
  return {Packing::kNatural, 0, Real(1)};
}

template Packed<float> Natural::round(std::span<float>, const RngKey&, Scratch<float>&) const;
template Packed<double> Natural::round(std::span<double>, const RngKey&, Scratch<double>&) const;

}  // namespace gradwire
