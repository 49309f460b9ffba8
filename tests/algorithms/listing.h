// Helpers to write the listings of papers in tests: gradients, C_i^t as an operator, means, and a run to
// compare with.
#pragma once

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "algorithms/core/params.h"
#include "algorithms/core/sampling.h"
#include "algorithms/support/replica.h"
#include "base/serialize.h"
#include "tests/algorithms/theory.h"

namespace gradwire::testing {

using Vector = std::vector<double>;

constexpr std::uint32_t kRounds = 60;

// The operations of a listing: gradients, C_i^t as an operator, and means.
struct Listing {
  const Federation<double>& f;
  Compressor compressor;
  std::uint64_t seed = 1;
  std::uint32_t n = f.n();
  std::size_t d = f.d();

  Vector grad(std::uint32_t i, const Vector& x, Batch batch = {}) const {
    Vector g(d);
    f.oracles[i]->loss_and_gradient(x, batch, g);
    return g;
  }
  // Returns part `part` of the message of client i in round t.
  Vector C(std::uint32_t i, std::uint32_t t, Vector v, std::uint32_t part = 0) const {
    return apply(compressor, std::move(v), {seed, i, t, RngDomain::kCompressor + part});
  }
  // Returns the server's broadcast in round t.
  Vector C_down(const std::string& spec, std::uint32_t t, Vector v) const {
    return apply(parse_compressor(spec, d, 1), std::move(v), downlink_key(seed, t));
  }
  static Vector apply(const Compressor& c, Vector v, const RngKey& key) {
    Scratch<double> scratch;
    PayloadBuffer<double> buffer;
    Vector out(v.size());
    const Payload<double> p = compress<double>(c, v, key, scratch, buffer);
    add_decoded<double>(p, 1.0, out);
    return out;
  }
  // Returns (1/n) Σ_i of(i).
  Vector mean(auto&& of) const {
    Vector sum(d);
    for (std::uint32_t i = 0; i < n; ++i) {
      const Vector v = of(i);
      for (std::size_t j = 0; j < d; ++j) sum[j] += v[j] / n;
    }
    return sum;
  }
  bool coin(std::uint32_t t, double p) const {
    return RngStream({seed, kServerClient, t, RngDomain::kCoin}).uniform() < p;
  }
  // Returns the `count` samples, out of four, that client i draws for local step k of round t.
  std::vector<std::uint32_t> batch(std::uint32_t i, std::uint32_t t, std::uint32_t count,
                                   std::uint32_t k = 0) const {
    RngStream stream({seed, i, t, RngDomain::kMinibatch + k});
    std::vector<std::uint32_t> samples(count);
    for (auto& s : samples) s = stream.below(4);
    return samples;
  }
};

inline Vector operator+(Vector a, const Vector& b) {
  for (std::size_t j = 0; j < a.size(); ++j) a[j] += b[j];
  return a;
}
inline Vector operator*(double s, Vector a) {
  for (double& v : a) v *= s;
  return a;
}
inline Vector operator-(Vector a, const Vector& b) { return std::move(a) + (-1.0) * b; }

inline void expect_near(const Vector& got, const Vector& want, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t j = 0; j < got.size(); ++j)
    EXPECT_NEAR(got[j], want[j], 1e-11 * (1 + std::abs(want[j]))) << what << j;
}

struct Case {
  Federation<double> federation{5, 12};
  std::shared_ptr<RunContext<double>> run_context;
  Vector model;
  double gamma;
  Listing list;

  explicit Case(const AlgorithmSpec& spec)
      : run_context(federation.run_context(spec)),
        model(run<double>(federation, run_context, kRounds).model),
        gamma(gamma_of(*run_context)),
        list{federation, run_context->compressor} {}
};

}  // namespace gradwire::testing
