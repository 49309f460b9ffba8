// The constants of theory, compared with the errors of the compressors on given vectors. Also tests for known
// bugs of other implementations.
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "compressors/compressor.h"
#include "compressors/norms.h"
#include "compressors/symmetric_eigen.h"
#include "tests/compressors/compressor_support.h"

namespace gradwire {
namespace {

CompressorConstants constants_of(const std::string& spec, std::size_t d) {
  return constants(parse_compressor(spec, d), d);
}

// Returns the relative error of one draw.
double error_of(const Compressor& c, const Vec<double>& x, std::uint32_t round) {
  Scratch<double> scratch;
  PayloadBuffer<double> buffer;
  Vec<double> v = x, decoded(x.size());
  add_decoded<double>(compress(c, v, {.seed = 6, .round = round}, scratch, buffer), 1, decoded);
  long double error = 0, norm = 0;  // a double would overflow
  for (std::size_t j = 0; j < x.size(); ++j) {
    const long double off = decoded[j] - x[j], t = x[j];
    error += off * off;
    norm += t * t;
  }
  return static_cast<double>(error / norm);
}
// Checks that the mean error over draws is `expected`, to within 5.5 standard errors.
void expect_mean_error(const std::string& spec, const Vec<double>& x, double expected) {
  constexpr int kDraws = 20'000;
  const Compressor c = parse_compressor(spec, x.size());
  double sum = 0, sum_sq = 0;
  for (std::uint32_t t = 0; t < kDraws; ++t) {
    const double e = error_of(c, x, t);
    sum += e / kDraws;
    sum_sq += e * e / kDraws;
  }
  EXPECT_NEAR(sum, expected, 5.5 * std::sqrt(std::max(0.0, sum_sq - sum * sum) / kDraws) + 1e-9) << spec;
}

Vec<double> random_vector(std::size_t d) { return ordinary_inputs<double>(d)[0].x; }

TEST(Constants, MatchTheTable) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(constants_of("terngrad", 100).omega, 4.5);
  EXPECT_EQ(constants_of("qsgd:s=1", 100).omega, 9);
  EXPECT_EQ(constants_of("qsgd:s=1,p=inf", 100).omega, 4.5);
  EXPECT_EQ(constants_of("qsgd:s=4", 100).omega, std::min(100.0 / 16, 10.0 / 4));
  EXPECT_EQ(constants_of("qsgd:s=64", 100).omega, 100.0 / (64 * 64));
  EXPECT_EQ(constants_of("natural_dithering:s=8", 64).omega, 0.125 + 8.0 / 128 * 8 / 128);
  EXPECT_EQ(constants_of("natural_dithering:s=2", 64).omega, 0.125 + 4);
  EXPECT_EQ(constants_of("natural_dithering:s=8,p=1", 64).omega, 0.125 + 0.5 * 0.5);
  EXPECT_EQ(constants_of("sign", 64).alpha, 1.0 / 64);
  EXPECT_EQ(constants_of("bernoulli:p=0.25", 64).omega, 3);
  EXPECT_EQ(constants_of("bernoulli:p=0.25", 64).zeta, 16);
  EXPECT_EQ(constants_of("rankk:k=2,rows=4", 64).alpha, 0.5);
  EXPECT_EQ(constants_of("rankk:k=2,rows=4", 64).zeta, 40);
  EXPECT_EQ(constants_of("rankr:r=2", 55).alpha, 0.2) << "the matrix has side 10";
  EXPECT_EQ(constants_of("rankr:r=2", 55).zeta, 22);
  EXPECT_EQ(constants_of("natural(randk:k=16)", 64).omega, 9.0 / 8 * 4 - 1);
  EXPECT_DOUBLE_EQ(constants_of("natural(topk:k=16)", 64).alpha, 8.0 / 9 / 4);
  EXPECT_FALSE(constants_of("natural(topk:k=16)", 64).unbiased);
  EXPECT_EQ(constants_of("scaled(randk:k=16)", 64).alpha, 0.25);
  EXPECT_FALSE(constants_of("scaled(randk:k=16)", 64).unbiased);
  EXPECT_DOUBLE_EQ(constants_of("scaled(natural)", 64).alpha, 8.0 / 9);
  EXPECT_EQ(constants_of("induced(topk:k=16,randk:k=16)", 64).omega, 3 * 0.75);
  EXPECT_EQ(constants_of("induced(topk:k=16,randk:k=16)", 64).zeta, 32);
  EXPECT_TRUE(constants_of("induced(topk:k=16,randk:k=16)", 64).unbiased);
  // The omega of the outer compressor depends on the number of values that it gets: k = 16 from randk, and up
  // to d = 64 from bernoulli.
  EXPECT_DOUBLE_EQ(constants_of("terngrad(randk:k=16)", 64).omega, 2.5 * 4 - 1);
  EXPECT_DOUBLE_EQ(constants_of("terngrad(bernoulli:p=0.5)", 64).omega, 4.5 * 2 - 1);
  EXPECT_LT(constants_of("qsgd:s=2,p=1", 64).omega, inf);
}

TEST(Constants, MatchTheErrorOfDithering) {
  const std::size_t d = 40;
  const Vec<double> x = random_vector(d);
  double norm_sq = 0, largest = 0;
  for (const double t : x) norm_sq += t * t, largest = std::max(largest, std::abs(t));
  const auto expected = [&](double unit) {
    double sum = 0;
    for (const double t : x) {
      const double f = std::abs(t) / unit - std::floor(std::abs(t) / unit);
      sum += f * (1 - f);
    }
    return unit * unit * sum / norm_sq;
  };
  expect_mean_error("qsgd:s=1", x, expected(std::sqrt(norm_sq)));
  expect_mean_error("qsgd:s=5", x, expected(std::sqrt(norm_sq) / 5));
  expect_mean_error("terngrad", x, expected(largest));
  expect_mean_error("qsgd:s=3,p=inf", x, expected(largest / 3));
}

TEST(Constants, AreReachedByWorstCaseVectors) {
  // The worst cases. Qsgd with s = 1: all entries are equal. TernGrad: one entry has size 1, and all others
  // have size 1 / (1 + sqrt d).
  expect_mean_error("qsgd:s=1", Vec<double>(16, -0.3), 3);
  Vec<double> x(16, 1 / 5.0);
  x[3] = 1;
  expect_mean_error("terngrad", x, 1.5);
  expect_mean_error("natural", Vec<double>(16, 4.0 / 3), 0.125);
  expect_mean_error("natural(randk:k=4)", Vec<double>(16, 4.0 / 3), 9.0 / 8 * 4 - 1);
  expect_mean_error("natural(topk:k=4)", Vec<double>(16, 4.0 / 3), 1 - 8.0 / 9 / 4);
  expect_mean_error("scaled(natural)", Vec<double>(16, 4.0 / 3), 1.0 / 9);
}

TEST(Constants, MatchTheMeanErrorOfTopLEKWhichSendsAtMostK) {
  for (const std::size_t d : {5, 40}) {
    for (const Input<double>& input : ordinary_inputs<double>(d)) {
      if (input.name == "zero") continue;
      const std::string spec = "toplek:k=" + std::to_string(d / 5);
      expect_mean_error(spec, input.x, 1 - 1.0 / 5);
    }
  }
}

TEST(Constants, MatchTheErrorOfSignForEachVector) {
  const Vec<double> x = random_vector(40);
  double sum = 0, norm_sq = 0;
  for (const double t : x) sum += std::abs(t), norm_sq += t * t;
  EXPECT_NEAR(error_of(parse_compressor("sign", 40), x, 0), 1 - sum * sum / (40 * norm_sq), 1e-14);
}

// ---- bugs of other implementations ----

TEST(Regressions, NaturalDitheringQuantises) {
  Scratch<double> scratch;
  PayloadBuffer<double> buffer;
  Vec<double> v = random_vector(400);
  const auto& p = compress(parse_compressor("natural_dithering:s=4", 400), v, {}, scratch, buffer);
  std::set<double> sizes;
  for (const double t : p.values) sizes.insert(std::abs(t));
  EXPECT_LE(sizes.size(), 5u);
  EXPECT_EQ(wire_bits(p), 64 + 400 * (1 + 3));
}

TEST(Regressions, OneLevelCostsBitsAndHasVariance) {
  Scratch<float> scratch;
  PayloadBuffer<float> buffer;
  Vec<float> v(10, 0.5f);
  const auto& p = compress(parse_compressor("natural_dithering:s=1", 10), v, {}, scratch, buffer);
  EXPECT_EQ(wire_bits(p), 32 + 10 * 2);
  for (const char* spec : {"terngrad", "qsgd", "qsgd:s=1", "natural_dithering"})
    EXPECT_GT(constants_of(spec, 10).omega, 0) << spec;
}

TEST(Regressions, OverflowInsideACompositionIsCutToALevel) {
  const double most = std::numeric_limits<double>::max();
  for (const char* spec :
       {"induced(randk:k=3,qsgd:s=3)", "induced(randk:k=3,terngrad)", "qsgd:s=3", "qsgd:s=1", "terngrad",
        "natural_dithering", "sign", "qsgd:s=7,p=1", "qsgd(randk:k=1)"}) {
    Scratch<double> scratch;
    PayloadBuffer<double> buffer;
    for (std::uint32_t round = 0; round < 20; ++round) {
      Vec<double> v(4, most);
      const Payload<double>& p = compress(parse_compressor(spec, 4), v, {.round = round}, scratch, buffer);
      const Payload<double>& last = p.next != nullptr ? *p.next : p;
      for (const double t : last.values) ASSERT_TRUE(std::isfinite(t)) << spec;
    }
  }
}

// ---- norms and eigenvectors ----

TEST(Norms, NeitherOverflowNorVanish) {
  const double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  for (const double p : {1.0, 1.5, 2.0, 3.0, 700.0}) {
    const ScaledNorm huge = norm<double>(Vec<double>(4, most), p);
    EXPECT_NEAR(std::log2(huge.value) + huge.exponent, 1024 + 2 / p, 1e-9) << p;
    const ScaledNorm tiny = norm<double>(Vec<double>(4, -least), p);
    EXPECT_NEAR(std::log2(tiny.value) + tiny.exponent, -1074 + 2 / p, 1e-9) << p;
    EXPECT_EQ(norm<double>(Vec<double>(4), p).value, 0);
    const ScaledNorm floats = norm<float>(Vec<float>(4, std::numeric_limits<float>::max()), p);
    EXPECT_NEAR(std::log2(floats.value) + floats.exponent, 128 + 2 / p, 1e-6) << p;
  }
}

TEST(Norms, MatchTheLoopForEveryLength) {
  for (const std::size_t d : {1, 31, 32, 33, 1000}) {
    const Vec<double> x = random_vector(d);
    for (const double p : {1.0, 1.5, 2.0, 5.0}) {
      double sum = 0;
      for (const double t : x) sum += std::pow(std::abs(t), p);
      EXPECT_NEAR(norm<double>(x, p).over(1), std::pow(sum, 1 / p), 1e-12) << d << " " << p;
    }
    double largest = 0;
    for (const double t : x) largest = std::max(largest, std::abs(t));
    EXPECT_EQ(norm<double>(x, std::numeric_limits<double>::infinity()).over(1), largest);
    EXPECT_EQ(largest_magnitude<double>(x), largest);
  }
}

TEST(SymmetricEigenvectors, AreOrthonormalAndSolveTheMatrix) {
  std::vector<double> work;
  for (const std::size_t m : {1, 2, 3, 10, 40}) {
    RngStream stream({.seed = m});
    std::vector<double> a(m * m);
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j <= i; ++j) a[i * m + j] = a[j * m + i] = stream.uniform() - 0.5;
    if (m == 10) {  // rank 3: the eigenvalue 0 occurs seven times
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < m; ++j) a[i * m + j] = std::max(i, j) < 3 ? a[i * m + j] : 0;
    }
    std::vector<double> u = a;
    symmetric_eigenvectors(u, m, work);
    double before = std::numeric_limits<double>::infinity();
    for (std::size_t l = 0; l < m; ++l) {
      const double* const v = u.data() + l * m;
      double lambda = 0;
      std::vector<double> av(m);
      for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = 0; j < m; ++j) av[i] += a[i * m + j] * v[j];
        lambda += v[i] * av[i];
      }
      for (std::size_t i = 0; i < m; ++i) EXPECT_NEAR(av[i], lambda * v[i], 1e-13 * static_cast<double>(m));
      EXPECT_LE(lambda, before + 1e-13);
      before = lambda;
      for (std::size_t o = 0; o < m; ++o) {
        double product = 0;
        for (std::size_t i = 0; i < m; ++i) product += v[i] * u[o * m + i];
        EXPECT_NEAR(product, o == l ? 1 : 0, 1e-13);
      }
    }
  }
}

TEST(RankK, MatchesTheTruncatedDecompositionFromEitherSide) {
  // The columns are orthogonal with lengths 5, 3, 2, 1, which are the singular values.
  const double length[4] = {3, 5, 1, 2};
  for (const bool wide : {false, true}) {
    Vec<double> x(8 * 4);
    for (std::size_t i = 0; i < 8; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        // Columns of a Hadamard matrix.
        const double sign = __builtin_popcount(static_cast<unsigned>(i & (j + 1))) % 2 == 0 ? 1 : -1;
        x[wide ? j * 8 + i : i * 4 + j] = sign * length[j] / std::sqrt(8.0);
      }
    }
    const double left_out[5] = {39, 14, 5, 1, 0};
    for (std::uint32_t k = 1; k <= 4; ++k) {
      const std::string spec = "rankk:k=" + std::to_string(k) + ",rows=" + (wide ? "4" : "8");
      EXPECT_NEAR(error_of(parse_compressor(spec, 32), x, 0), left_out[k] / 39, 1e-14) << spec;
    }
  }
}

TEST(RankK, KeepsProductsOfTheLargestNumbersFinite) {
  const float most = std::numeric_limits<float>::max();
  Scratch<float> scratch;
  PayloadBuffer<float> buffer;
  Vec<float> v(64, most), decoded(64);
  add_decoded<float>(compress(parse_compressor("rankk:k=3", 64), v, {}, scratch, buffer), 1, decoded);
  for (const float t : decoded) EXPECT_NEAR(t / most, 1, 1e-4);
}

}  // namespace
}  // namespace gradwire
