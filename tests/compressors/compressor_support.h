// Every compressor with many choices of its parameters, and the vectors that tests compress.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "base/config_error.h"
#include "compressors/compressor.h"

namespace gradwire {

struct Setter {
  std::uint32_t k;
  bool flag;
  void operator()(std::string_view, Count& count, auto&&...) const { count = {k, 0}; }
  void operator()(std::string_view, Clients& n, auto&&...) const { n = {k}; }
  void operator()(std::string_view, std::uint32_t& levels_or_rank, auto&&...) const { levels_or_rank = k; }
  void operator()(std::string_view, Rows&, auto&&...) const {}
  void operator()(std::string_view, NormOrder& p, auto&&...) const {
    p = {flag ? 2 : k % 2 == 0 ? 1.5 : std::numeric_limits<double>::infinity()};
  }
  void operator()(std::string_view, double& probability, auto&&...) const { probability = flag ? 0.5 : 1; }
  void operator()(std::string_view, bool& value, auto&&...) const { value = flag; }
};

inline void add_variant(const std::string& spec, std::size_t d, std::vector<Compressor>& all) {
  try {
    const Compressor c = parse_compressor(spec, d);
    if (std::find(all.begin(), all.end(), c) == all.end()) all.push_back(c);
  } catch (const ConfigError&) {
    // a k that is too large for d
  }
}
template <class... C>
void add_simple(std::size_t d, std::vector<Compressor>& all, CompressorList<C...>) {
  const auto add = [&]<class One>(One) {
    for (const std::size_t k : {std::size_t{1}, (d + 2) / 3, d / 2 + 1, d, 2 * d, 2 * d + 1}) {
      for (const bool flag : {true, false}) {
        One c;
        One::fields(c, Setter{static_cast<std::uint32_t>(k), flag});
        add_variant(to_spec(c), d, all);
      }
    }
  };
  (add(C{}), ...);
}
// Returns every compressor with every parameter, and compositions, for vectors of length d.
inline std::vector<Compressor> variants(std::size_t d) {
  std::vector<Compressor> all;
  add_simple(d, all, SimpleCompressors{});
  const std::string k = ":k=" + std::to_string((d + 1) / 2);
  for (const std::string& spec : {"natural(randk" + k + ")",
                                  "natural(topk" + k + ")",
                                  "qsgd:s=4(topk" + k + ")",
                                  "terngrad(randseqk" + k + ")",
                                  std::string("natural_dithering:s=3(permk:n=3)"),
                                  std::string("natural(bernoulli:p=0.5)"),
                                  "natural(toplek" + k + ")",
                                  "qsgd:s=1(randk" + k + ",scaled=false)",
                                  std::string("natural(identity)"),
                                  "scaled(randk" + k + ")",
                                  std::string("scaled(natural)"),
                                  std::string("scaled(qsgd:s=3)"),
                                  std::string("scaled(terngrad)"),
                                  std::string("scaled(natural_dithering:s=3)"),
                                  "scaled(natural(randk" + k + "))",
                                  std::string("scaled(permk:n=3)"),
                                  "induced(topk" + k + ",randk" + k + ")",
                                  std::string("induced(sign,natural)"),
                                  "induced(rankk,natural(randseqk" + k + "))",
                                  "induced(randk" + k + ",scaled=false,permk:n=2)",
                                  std::string("induced(scaled(natural),terngrad)"),
                                  "scaled(induced(topk" + k + ",natural))"})
    add_variant(spec, d, all);
  return all;
}

template <class Real>
struct Input {
  std::string name;
  Vec<Real> x;
};

// Returns vectors on which the bounds of theory hold up to rounding.
template <class Real>
std::vector<Input<Real>> ordinary_inputs(std::size_t d) {
  RngStream stream({.seed = 77});
  Vec<Real> random(d), hot(d), huge(d), tiny(d);
  for (Real& t : random) t = static_cast<Real>(stream.uniform() + stream.uniform() - 1);
  hot[d / 2] = Real(-3);
  const auto far = static_cast<Real>(sizeof(Real) == 4 ? 1e30 : 1e200);
  for (std::size_t j = 0; j < d; ++j) {
    huge[j] = random[j] * far;
    tiny[j] = random[j] / far;
  }
  return {{"random", random}, {"zero", Vec<Real>(d)}, {"constant", Vec<Real>(d, Real(-0.7))},
          {"one-hot", hot},   {"huge", huge},         {"tiny", tiny}};
}
// Returns vectors for which only the form of the payload is guaranteed.
template <class Real>
std::vector<Input<Real>> all_inputs(std::size_t d) {
  using Limits = std::numeric_limits<Real>;
  const Real edge[] = {Real(-0.0),         Real(0),       Limits::denorm_min(),
                       -Limits::min() / 2, Limits::max(), -Limits::min()};
  Vec<Real> edges(d);
  for (std::size_t j = 0; j < d; ++j) edges[j] = edge[j % std::size(edge)];
  std::vector<Input<Real>> inputs = ordinary_inputs<Real>(d);
  inputs.push_back({"edges", edges});
  inputs.push_back({"minus zero", Vec<Real>(d, Real(-0.0))});
  return inputs;
}

template <class Real>
Vec<Real> decode(const Payload<Real>& p) {
  Vec<Real> out(p.dim);
  add_decoded<Real>(p, 1, out);
  return out;
}

// Calls check(link, number of the link) for each link.
template <class Real, class Check>
void each_link(const Payload<Real>& p, Check check) {
  std::size_t number = 0;
  for (const Payload<Real>* link = &p; link != nullptr; link = link->next) check(*link, number++);
}

// Checks that every value is the unit times a member of the packing's set.
template <class Real>
void check_packing(const Payload<Real>& p) {
  if (p.packing == Packing::kPlain) return;
  ASSERT_GE(p.unit, 0);
  ASSERT_TRUE(std::isfinite(p.unit));
  for (const Real t : p.values) {
    const Real size = std::abs(t);
    int exponent = 0;
    const bool power = p.unit > 0 && std::abs(std::frexp(size / p.unit, &exponent)) == Real(0.5);
    if (p.packing == Packing::kTernary) {
      ASSERT_TRUE(t == 0 ? !std::signbit(t) : size == p.unit) << t;
    }
    if (p.packing == Packing::kLevels && size > 0) {
      const Real level = std::round(size / p.unit);
      ASSERT_TRUE(level <= static_cast<Real>(p.levels) && level * p.unit == size) << t;
    }
    if (p.packing == Packing::kSigns) {
      ASSERT_EQ(size, p.unit);
    }
    if (p.packing == Packing::kNatural && size >= std::numeric_limits<Real>::min()) {
      ASSERT_TRUE(power) << t;
    }
    if (p.packing == Packing::kDithered && p.unit > std::numeric_limits<Real>::min() * 1000) {
      ASSERT_TRUE(size == 0 || (power && exponent <= 1 && exponent > 1 - static_cast<int>(p.levels))) << t;
    }
  }
}

}  // namespace gradwire
