// A custom compressor, which is not in the list. It works wherever those of the list do, also through the
// codec.
#include "compressors/custom_compressor.h"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/config_error.h"
#include "proto/wire/codec_context.h"
#include "tests/algorithms/theory.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of tests of algorithms

// RandK, written as a custom compressor.
struct OwnRandK {
  std::uint32_t k;
  std::string spec() const { return "own_randk:k=" + std::to_string(k); }
  CompressorConstants constants(std::size_t d) const {
    return CompressorConstants::of_unbiased(static_cast<double>(d) / k - 1, k);
  }
  template <class Real>
  const Payload<Real>& operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>&,
                                  PayloadBuffer<Real>& to) const {
    draw_subset(key, k, static_cast<std::uint32_t>(v.size()), to.indices());
    to.values().clear();
    for (const std::uint32_t j : to.indices()) to.values().push_back(Real(v.size()) / Real(k) * v[j]);
    to.sparse(static_cast<std::uint32_t>(v.size()));
    to.set_seeded(key);
    return to.view();
  }
  bool redraw(Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
              std::vector<std::uint32_t>& indices, std::uint32_t&) const {
    if (shape != Shape::kSparse || count != k) return false;
    draw_subset(key, k, dim, indices);
    return true;
  }
};

// The signs times the largest absolute value, divided by d: contractive with alpha = 1/d^2. Only for double.
struct OwnSigns {
  static constexpr std::string_view name = "own_signs";
  CompressorConstants constants(std::size_t d) const {
    return CompressorConstants::of_contractive(1 / static_cast<double>(d * d), static_cast<double>(d));
  }
  const Payload<double>& operator()(Vec<double>& v, const RngKey&, Scratch<double>&,
                                    PayloadBuffer<double>& to) const {
    double most = 0;
    for (const double x : v) most = std::max(most, std::abs(x));
    const double unit = most / static_cast<double>(v.size());
    for (double& x : v) x = std::copysign(unit, x);
    to.whole(v);
    to.set_packing({Packing::kSigns, 0, unit});
    return to.view();
  }
};

std::shared_ptr<RunContext<double>> run_context_with(const Federation<double>& f, const Compressor& own,
                                                     AlgorithmSpec spec) {
  auto run_context = f.run_context(spec_of("gd"));
  run_context->compressor = own;
  Theory theory;
  theory.n = f.n(), theory.d = f.d(), theory.samples = 4 * f.n();
  theory.smoothness = &f.smoothness;
  std::vector<std::string> warnings;
  run_context->algorithm = resolve(spec, own, theory, warnings);
  return run_context;
}

TEST(CompressorInterface, MatchesItsTwinOfTheListInStepsBitsAndCodec) {
  const Federation<double> f(6, 15);
  for (const char* name :
       {"dcgd", "diana", "vr_diana", "adiana", "marina", "pp_marina", "dasha", "cofig", "frecon"}) {
    const auto twin = f.run_context(spec_of(name, "randk:k=3"));
    const auto own = run_context_with(f, custom_compressor(OwnRandK{3}), spec_of(name));
    EXPECT_EQ(own->algorithm.step_size, twin->algorithm.step_size) << name;
    EXPECT_EQ(own->algorithm.compressor, "own_randk:k=3");
    for (const bool encoded : {false, true}) {
      const auto expected = run<double>(f, twin, 20, {.encoded = encoded});
      const auto got = run<double>(f, own, 20, {.encoded = encoded});
      EXPECT_EQ(got.model, expected.model) << name;
      ASSERT_EQ(got.records.size(), expected.records.size());
      EXPECT_EQ(got.records.back().bits_up, expected.records.back().bits_up) << name;
      EXPECT_EQ(got.records.back().bytes_up, expected.records.back().bytes_up)
          << name << ": the support is not sent";
    }
  }
}

TEST(CompressorInterface, PassesPackedPayloadsThroughTheCodecBitForBit) {
  const Federation<double> f(4, 9);
  const auto run_context =
      run_context_with(f, custom_compressor(OwnSigns{}), spec_of("ef21", "", {}, "theory"));
  const auto plain = run<double>(f, run_context, 30);
  const auto encoded = run<double>(f, run_context, 30, {.encoded = true});
  EXPECT_EQ(plain.model, encoded.model);
  EXPECT_LT(f.gap(plain.model), f.gap(f.x0));
  EXPECT_EQ(plain.records.back().bytes_up, encoded.records.back().bytes_up);
}

TEST(CompressorInterface, WorksInsideCompositions) {
  const Federation<double> f(6, 15);
  const Compressor own = custom_compressor(OwnRandK{3}), twin = parse_compressor("randk:k=3", 15);
  const std::vector<std::pair<Compressor, Compressor>> pairs = {
      {Scaled{{own}}, Scaled{{twin}}},
      {Composed{{Natural{}, own}}, Composed{{Natural{}, twin}}},
      {Induced{{TopK{{2}}, own}}, Induced{{TopK{{2}}, twin}}},
  };
  for (const auto& [with_own, with_twin] : pairs) {
    const CompressorConstants a = constants(with_own, 15, 6), b = constants(with_twin, 15, 6);
    EXPECT_EQ(a.omega, b.omega);
    EXPECT_EQ(a.alpha, b.alpha);
    const AlgorithmSpec spec = spec_of(a.unbiased ? "diana" : "ef21");
    EXPECT_EQ(run<double>(f, run_context_with(f, with_own, spec), 20, {.encoded = true}).model,
              run<double>(f, run_context_with(f, with_twin, spec), 20, {.encoded = true}).model)
        << to_spec(with_own);
  }
}

TEST(CompressorInterface, IsCheckedForItsClassLikeThoseOfTheList) {
  const Federation<double> f(4, 9);
  EXPECT_THROW(run_context_with(f, custom_compressor(OwnSigns{}), spec_of("marina")), ConfigError);
  EXPECT_THROW(run_context_with(f, custom_compressor(OwnRandK{3}), spec_of("ef21")), ConfigError);
  EXPECT_THROW(run_context_with(f, custom_compressor(OwnRandK{3}), spec_of("gd")), ConfigError);
  EXPECT_THROW(parse_compressor("own_randk:k=3", 9), ConfigError) << "its name cannot be read back";
}

struct WrongLength : OwnSigns {
  const Payload<double>& operator()(Vec<double>&, const RngKey&, Scratch<double>&,
                                    PayloadBuffer<double>& to) const {
    return to.nothing(1);
  }
};
struct WrongConstants : OwnSigns {
  CompressorConstants constants(std::size_t) const { return CompressorConstants::of_contractive(1.5, 1); }
};

TEST(CompressorInterface, ReportsMistakesOfItsAuthorAsLogicErrors) {
  Scratch<double> scratch;
  PayloadBuffer<double> buffer;
  Vec<double> v = {1, 2, 3};
  EXPECT_THROW(compress(custom_compressor(WrongLength{}), v, {}, scratch, buffer), std::logic_error);
  EXPECT_THROW(constants(custom_compressor(WrongConstants{}), 3), std::logic_error);
  Scratch<float> narrow;
  PayloadBuffer<float> store32;
  Vec<float> v32 = {1, 2, 3};
  EXPECT_THROW(compress(custom_compressor(OwnSigns{}), v32, {}, narrow, store32), std::logic_error);
}

}  // namespace
}  // namespace gradwire
