#include "compressors/composed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/config_error.h"
#include "compressors/compress_finite.h"
#include "compressors/compressor.h"

namespace gradwire {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw ConfigError("algorithm.compressor", message); }

template <class C>
bool is(const Compressor& c) {
  return std::holds_alternative<C>(c);
}
bool is_composed(const Compressor& c) { return is<Composed>(c) || is<Scaled>(c) || is<Induced>(c); }

// Refuses RankR: its alpha is relative to a different norm than the alpha of the other compressors.
void refuse_rank_r(const std::vector<Compressor>& parts) {
  for (const Compressor& part : parts)
    if (is<RankR>(part)) refuse("rankr cannot be part of another compressor; use it alone");
}

RngKey later(const RngKey& key, std::uint32_t draws) {
  RngKey other = key;
  other.domain = key.domain + draws;
  return other;
}

// Returns the largest number of values that c sends of a vector of length d.
std::size_t most_values(const Compressor& c, std::size_t d) {
  return c.visit([&](const auto& simple) -> std::size_t {
    if constexpr (requires { simple.most_values(d); }) {
      return simple.most_values(d);
    } else {
      return static_cast<std::size_t>(std::ceil(constants(c, d).zeta));
    }
  });
}

double outer_omega(const std::vector<Compressor>& parts, std::size_t d) {
  return constants(parts[0], std::max<std::size_t>(most_values(parts[1], d), 1)).omega;
}

template <class Real>
Packed<Real> round_values(const Compressor& c, std::span<Real> v, const RngKey& key, Scratch<Real>& scratch) {
  return c.visit([&](const auto& outer) -> Packed<Real> {
    if constexpr (requires { outer.round(v, key, scratch); }) {
      return outer.round(v, key, scratch);
    } else {
      throw std::logic_error("the outer compressor of a composition does not round");
    }
  });
}

bool rounds(const Compressor& c) {
  return c.visit([](const auto& outer) {
    return requires(std::span<double> v, Scratch<double> & s) { outer.round(v, RngKey{}, s); };
  });
}

}  // namespace

bool Composed::operator==(const Composed& other) const { return parts == other.parts; }
bool Scaled::operator==(const Scaled& other) const { return parts == other.parts; }
bool Induced::operator==(const Induced& other) const { return parts == other.parts; }

void Composed::check(std::size_t, std::uint32_t) const {
  refuse_rank_r(parts);
  const std::string outer = to_spec(parts[0]), inner = to_spec(parts[1]);
  if (!rounds(parts[0]) || is<Sign>(parts[0]))
    refuse(outer + "(...): only natural, qsgd, terngrad and natural_dithering can be the outer compressor");
  if (is_composed(parts[1]) || is<RankK>(parts[1]))
    refuse(outer + "(" + inner + "): the inner one must send entries of the vector, as topk and randk do");
}

CompressorConstants Composed::joint(std::size_t d, std::uint32_t n) const {
  const CompressorConstants inner = constants(parts[1], d, n);
  const double omega = outer_omega(parts, d);
  if (!inner.unbiased) return CompressorConstants::of_contractive(inner.alpha / (1 + omega), inner.zeta);
  CompressorConstants q = CompressorConstants::of_unbiased((1 + omega) * (1 + inner.omega) - 1, inner.zeta);
  // The rounding is independent of the other draws, so it adds omega mean ||C_i(a_i)||^2 / n to the error.
  q.A = inner.A + omega * (1 + inner.omega) / n;
  q.B = inner.B;
  return q;
}

template <class Real>
const Payload<Real>& Composed::operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                          PayloadBuffer<Real>& to) const {
  const std::size_t d = v.size();
  compress_finite(parts[1], v, key, scratch, to);
  if (to.view().values.empty()) return to.view();
  // The inner scaling may have overflowed; an infinite entry has no norm and no level.
  constexpr Real kMost = std::numeric_limits<Real>::max();
  for (Real& x : to.values()) x = std::clamp(x, -kMost, kMost);
  to.set_packing(round_values<Real>(parts[0], to.values(), later(key, kOuterDraw), scratch));
  if (!constants(parts[1], d).unbiased) to.rescale(static_cast<Real>(1 / (1 + outer_omega(parts, d))));
  return to.view();
}

void Scaled::check(std::size_t d, std::uint32_t n) const {
  refuse_rank_r(parts);
  if (is<Scaled>(parts[0]) || (d > 0 && !constants(parts[0], d, n).unbiased))
    refuse("scaled(" + to_spec(parts[0]) + "): C must be unbiased, as randk and natural are");
}

CompressorConstants Scaled::joint(std::size_t d, std::uint32_t n) const {
  const CompressorConstants q = constants(parts[0], d, n);
  return q.omega == 0 ? q : CompressorConstants::of_contractive(1 / (1 + q.omega), q.zeta);
}

template <class Real>
const Payload<Real>& Scaled::operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                        PayloadBuffer<Real>& to) const {
  const double omega = constants(parts[0], v.size()).omega;
  compress_finite(parts[0], v, key, scratch, to);
  if (omega == 0) return to.view();
  const auto c = static_cast<Real>(1 / (1 + omega));
  to.rescale(c);
  if (to.view().next != nullptr) to.second().rescale(c);
  return to.view();
}

void Induced::check(std::size_t d, std::uint32_t n) const {
  refuse_rank_r(parts);
  if (chain_link(parts[0], 1) != nullptr || chain_link(parts[1], 1) != nullptr)
    refuse("induced(" + to_spec(parts[0]) + "," + to_spec(parts[1]) +
           "): an induced compressor cannot contain another one");
  if (d == 0) return;
  if (!(constants(parts[0], d, n).alpha > 0))
    refuse("induced(" + to_spec(parts[0]) + ",...): the first must be contractive, as topk is");
  if (!constants(parts[1], d, n).unbiased)
    refuse("induced(...," + to_spec(parts[1]) + "): the second must be unbiased, as randk is");
}

CompressorConstants Induced::joint(std::size_t d, std::uint32_t n) const {
  const CompressorConstants first = constants(parts[0], d, n), second = constants(parts[1], d, n);
  CompressorConstants q =
      CompressorConstants::of_unbiased(second.omega * (1 - first.alpha), first.zeta + second.zeta);
  q.A = second.A * (1 - first.alpha);
  return q;
}

template <class Real>
const Payload<Real>& Induced::operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                         PayloadBuffer<Real>& to) const {
  Vec<Real>& rest = scratch.vec(kCompressorVec, v.size());
  std::copy(v.begin(), v.end(), rest.begin());
  add_decoded<Real>(compress_finite(parts[0], v, key, scratch, to), Real(-1), rest);
  compress_finite(parts[1], rest, later(key, kSecondDraw), scratch, to.second());
  return to.chain();
}

#define GRADWIRE_INSTANTIATE(C, Real)                                                    \
  template const Payload<Real>& C::operator()(Vec<Real>&, const RngKey&, Scratch<Real>&, \
                                              PayloadBuffer<Real>&) const;
GRADWIRE_INSTANTIATE(Composed, float)
GRADWIRE_INSTANTIATE(Composed, double)
GRADWIRE_INSTANTIATE(Scaled, float)
GRADWIRE_INSTANTIATE(Scaled, double)
GRADWIRE_INSTANTIATE(Induced, float)
GRADWIRE_INSTANTIATE(Induced, double)
#undef GRADWIRE_INSTANTIATE

}  // namespace gradwire
