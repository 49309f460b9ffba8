// Values in a packing: a unit times a member of a small set.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "proto/wire/bit_fields.h"
#include "proto/wire/bits.h"

namespace gradwire {
namespace {

template <class Real>
using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
template <class Real>
constexpr int kMantissaBits = sizeof(Real) == 4 ? 23 : 52;
template <class Real>
constexpr std::uint32_t kExponentMask = sizeof(Real) == 4 ? 0xFF : 0x7FF;

// A coder turns a value into a field and back. If a value has no field, field() returns that of another
// value, so the caller checks by decoding and comparing. valid() returns whether a field encodes a value.

// Encodes the exponent of v / unit. The sign is the bit above.
template <class Real>
struct NaturalCoder {
  Real unit;
  std::uint32_t field(Real v) const {
    return static_cast<std::uint32_t>(std::bit_cast<Bits<Real>>(v / unit) >> kMantissaBits<Real>);
  }
  bool valid(std::uint32_t field) const { return (field & kExponentMask<Real>) != kExponentMask<Real>; }
  Real value(std::uint32_t field) const {
    return std::bit_cast<Real>(static_cast<Bits<Real>>(Bits<Real>{field} << kMantissaBits<Real>)) * unit;
  }
};

// Encodes |v| / unit. The sign is the bit above.
template <class Real>
struct LevelCoder {
  Real unit;
  std::uint32_t levels, width;  // width: bits of a level
  std::uint32_t field(Real v) const {
    const Real level = std::round(std::abs(v) / unit), most = static_cast<Real>(levels);
    const std::uint32_t k = unit == 0 ? 0 : level < most ? static_cast<std::uint32_t>(level) : levels;
    return (std::signbit(v) ? std::uint32_t{1} << width : 0) | k;
  }
  bool valid(std::uint32_t field) const { return level_of(field) <= levels; }
  Real value(std::uint32_t field) const {
    const Real size = static_cast<Real>(level_of(field)) * unit;
    return (field >> width) != 0 ? -size : size;
  }
  std::uint32_t level_of(std::uint32_t field) const { return field & ((std::uint32_t{1} << width) - 1); }
};

template <class Real>
struct SignCoder {
  Real unit;
  std::uint32_t field(Real v) const { return std::signbit(v) ? 1 : 0; }
  bool valid(std::uint32_t) const { return true; }
  Real value(std::uint32_t field) const { return field != 0 ? -unit : unit; }
};

// Encodes zero as 0 and +-2^-l * unit as l + 1. The sign is the bit above.
template <class Real>
struct DitherCoder {
  static constexpr std::size_t kMost = 128;
  std::array<Real, kMost> size;  // by field without sign
  std::uint32_t levels, width;

  DitherCoder(const Packed<Real>& packed, std::uint32_t bits) : levels(packed.levels), width(bits - 1) {
    if (levels >= kMost) throw std::logic_error("a natural dithering with too many levels");
    size[0] = 0;
    for (std::uint32_t l = 0; l < levels; ++l) size[l + 1] = std::ldexp(packed.unit, -static_cast<int>(l));
  }
  static int exponent(Real v) {
    return static_cast<int>(std::bit_cast<Bits<Real>>(v) >> kMantissaBits<Real> & kExponentMask<Real>);
  }
  std::uint32_t field(Real v) const {
    const Real wanted = std::abs(v);
    std::uint32_t k = 0;
    if (wanted != 0) {
      const int l = exponent(size[1]) - exponent(wanted);  // wrong only for subnormal numbers
      k = l >= 0 && l < static_cast<int>(levels) ? static_cast<std::uint32_t>(l) + 1 : levels;
      if (size[k] != wanted)
        for (k = levels; k > 0 && size[k] != wanted;) --k;
    }
    return (std::signbit(v) ? std::uint32_t{1} << width : 0) | k;
  }
  bool valid(std::uint32_t field) const { return (field & ((std::uint32_t{1} << width) - 1)) <= levels; }
  Real value(std::uint32_t field) const {
    const Real v = size[field & ((std::uint32_t{1} << width) - 1)];
    return (field >> width) != 0 ? -v : v;
  }
};

// Encodes 0, unit, -unit as 0, 1, 2.
template <class Real>
struct TernaryCoder {
  Real unit;
  std::uint32_t field(Real v) const { return v == 0 ? 0 : v > 0 ? 1 : 2; }
  bool valid(std::uint32_t field) const { return field < 3; }
  Real value(std::uint32_t field) const { return field == 0 ? Real(0) : field == 1 ? unit : -unit; }
};

// Calls use(coder, bits of a field). 0 bits means five ternary fields in a byte.
template <class Real, class Use>
auto with_coder(const Packed<Real>& p, Use use) {
  const std::uint32_t bits =
      p.packing == Packing::kTernary ? 0 : packed_bits(p.packing, p.levels, sizeof(Real));
  switch (p.packing) {
    case Packing::kNatural: return use(NaturalCoder<Real>{p.unit}, bits);
    case Packing::kTernary: return use(TernaryCoder<Real>{p.unit}, bits);
    case Packing::kLevels: return use(LevelCoder<Real>{p.unit, p.levels, bits - 1}, bits);
    case Packing::kSigns: return use(SignCoder<Real>{p.unit}, bits);
    case Packing::kDithered: return use(DitherCoder<Real>(p, bits), bits);
    case Packing::kPlain: break;
  }
  throw std::logic_error("plain values are not packed");
}

constexpr std::size_t kTrits = 5;  // in a byte: 3^5 = 243

template <class Field>
void pack_trits(std::size_t count, std::span<std::byte> out, Field field) {
  for (std::size_t byte = 0; byte < out.size(); ++byte) {
    std::uint32_t sum = 0;
    for (std::size_t i = std::min(count, (byte + 1) * kTrits); i-- > byte * kTrits;) sum = 3 * sum + field(i);
    out[byte] = static_cast<std::byte>(sum);
  }
}

template <class Use>
Status unpack_trits(std::span<const std::byte> in, std::size_t count, Use use) {
  constexpr std::uint32_t kEnd = 243;
  for (std::size_t byte = 0; byte < in.size(); ++byte) {
    auto rest = static_cast<std::uint32_t>(in[byte]);
    if (rest >= kEnd) return Error{"a byte of ternary values is above 242"};
    for (std::size_t i = byte * kTrits; i < std::min(count, (byte + 1) * kTrits); ++i) {
      use(i, rest % 3);
      rest /= 3;
    }
    if (rest != 0) return Error{"unused ternary digits after the values are set"};
  }
  return Unit{};
}

template <class Real>
std::size_t unit_bytes(Packing packing) {
  return sends_unit(packing) ? sizeof(Real) : 0;
}

}  // namespace

std::uint64_t value_section_bytes(Packing packing, std::uint32_t levels, std::uint64_t count,
                                  std::size_t real_bytes) {
  if (count == 0) return 0;
  if (packing == Packing::kTernary) return real_bytes + (count + kTrits - 1) / kTrits;
  return (sends_unit(packing) ? real_bytes : 0) +
         packed_bytes(count, packed_bits(packing, levels, real_bytes));
}

template <class Real>
bool fits_packing(View<Real> values, const Packed<Real>& packed) {
  if (!std::isfinite(packed.unit) || std::signbit(packed.unit)) return false;
  return with_coder(packed, [&](const auto& coder, std::uint32_t) {
    bool fits = true;
    for (const Real v : values) {
      const std::uint32_t field = coder.field(v);
      fits &=
          coder.valid(field) && std::bit_cast<Bits<Real>>(coder.value(field)) == std::bit_cast<Bits<Real>>(v);
    }
    return fits;
  });
}

template <class Real>
void pack_values(View<Real> values, const Packed<Real>& packed, std::span<std::byte> out) {
  if (values.empty()) return;
  const std::size_t head = unit_bytes<Real>(packed.packing);
  std::memcpy(out.data(), &packed.unit, head);
  with_coder(packed, [&](const auto& coder, std::uint32_t bits) {
    const auto field = [&](std::size_t i) { return coder.field(values[i]); };
    if (bits == 0) return pack_trits(values.size(), out.subspan(head), field);
    pack_fields(values.size(), bits, out.subspan(head), field);
  });
}

template <class Real>
Status unpack_values(std::span<const std::byte> in, Packed<Real>& packed, Out<Real> values) {
  if (values.empty()) return Unit{};
  const std::size_t head = unit_bytes<Real>(packed.packing);
  std::memcpy(&packed.unit, in.data(), head);
  if (!std::isfinite(packed.unit) || std::signbit(packed.unit))
    return Error{"the unit of packed values must be finite and at least 0"};
  in = in.subspan(head);
  return with_coder(packed, [&](const auto& coder, std::uint32_t bits) -> Status {
    bool valid = true;
    const auto use = [&](std::size_t i, std::uint32_t field) {
      valid &= coder.valid(field);
      values[i] = coder.value(coder.valid(field) ? field : 0);
    };
    if (bits == 0) return unpack_trits(in, values.size(), use);
    if (!tail_is_zero(in, std::uint64_t{bits} * values.size()))
      return Error{"unused bits after the packed values are set"};
    unpack_fields(in, values.size(), bits, use);
    if (!valid) return Error{"a packed value does not belong to its packing, or is not finite"};
    return Unit{};
  });
}

template bool fits_packing<float>(View<float>, const Packed<float>&);
template bool fits_packing<double>(View<double>, const Packed<double>&);
template void pack_values<float>(View<float>, const Packed<float>&, std::span<std::byte>);
template void pack_values<double>(View<double>, const Packed<double>&, std::span<std::byte>);
template Status unpack_values<float>(std::span<const std::byte>, Packed<float>&, Out<float>);
template Status unpack_values<double>(std::span<const std::byte>, Packed<double>&, Out<double>);

}  // namespace gradwire
