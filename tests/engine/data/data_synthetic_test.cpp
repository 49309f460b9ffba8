#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/data/readers/source.h"
#include "engine/data/readers/synthetic.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

Dataset synthetic(const SyntheticSpec& spec) { return read_source("synthetic", "", spec); }

TEST(Random, NeverChangesItsNumbers) {
  Random random(1, "test");
  const std::array<std::uint64_t, 3> drawn = {random.next(), random.next(), random.next()};
  EXPECT_EQ(drawn, (std::array<std::uint64_t, 3>{7647311502996566629u, 16652726134439215131u,
                                                 13023004197747767213u}));
  // The bits of normal() are also guaranteed.
  double sum = 0;
  for (int i = 0; i < 1000; ++i) sum += random.normal();
  EXPECT_EQ(sum, 0x1.855778c9fbf8dp+4);
}

TEST(Random, NormalsMatchSingleDraws) {
  for (const std::size_t before : {0, 1}) {
    for (const std::size_t count : {0, 1, 2, 3, 127, 128, 129, 500}) {
      Random one(7, "normals"), many(7, "normals");
      for (std::size_t k = 0; k < before; ++k) EXPECT_EQ(many.normal(), one.normal());
      std::vector<double> drawn(count);
      many.normals(drawn);
      for (const double z : drawn) EXPECT_EQ(z, one.normal());
      EXPECT_EQ(many.normal(), one.normal());  // both continue alike
    }
  }
}

TEST(Random, StreamsDifferBySeedPurposeAndIndex) {
  std::set<std::uint64_t> first;
  int streams = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (const char* domain : {"", "a", "b", "ab"}) {
      for (std::uint64_t index = 0; index < 10; ++index, ++streams)
        first.insert(Random(seed, domain, index).next());
    }
  }
  EXPECT_EQ(first.size(), static_cast<std::size_t>(streams));
}

TEST(Random, UniformAndNormalHaveTheirMoments) {
  Random random(3, "moments");
  constexpr int kDraws = 200000;
  double uniform = 0, normal = 0, square = 0, fourth = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.uniform();
    ASSERT_TRUE(u >= 0 && u < 1);
    uniform += u / kDraws;
    const double z = random.normal();
    normal += z / kDraws;
    square += z * z / kDraws;
    fourth += z * z * z * z / kDraws;
  }
  EXPECT_NEAR(uniform, 0.5, 0.003);
  EXPECT_NEAR(normal, 0, 0.01);
  EXPECT_NEAR(square, 1, 0.02);
  EXPECT_NEAR(fourth, 3, 0.15);
}

TEST(Random, BelowIsUniformAndRefusesZero) {
  Random random(4, "below");
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(random.below(1), 0u);
  const std::uint64_t large = (std::uint64_t{1} << 63) + 1;
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.below(large), large);
  EXPECT_THROW(random.below(0), std::logic_error);
}

TEST(Random, ShuffleGivesEachOrderEquallyOften) {
  Random random(5, "shuffle");
  std::array<int, 27> counts{};
  for (int i = 0; i < 60000; ++i) {
    std::array<int, 3> items = {0, 1, 2};
    random.shuffle(std::span<int>(items));
    ++counts[static_cast<std::size_t>(items[0] * 9 + items[1] * 3 + items[2])];
  }
  EXPECT_EQ(std::count_if(counts.begin(), counts.end(), [](int c) { return std::abs(c - 10000) < 500; }), 6);
}

TEST(Random, LogarithmAndExponentialAreAsAccurateAsTheLibrary) {
  Random random(6, "accuracy");
  for (int i = 0; i < 100000; ++i) {
    const double x = std::ldexp(random.uniform() + 0x1p-60, static_cast<int>(random.below(200)) - 100);
    EXPECT_NEAR(portable_log(x), std::log(x), 4e-16 * std::max(1.0, std::abs(std::log(x)))) << x;
    const double near_one = 1 - random.uniform() * 0x1p-20;
    EXPECT_NEAR(portable_log(near_one), std::log(near_one), 4e-16 * std::abs(std::log(near_one))) << near_one;
    const double y = 1400 * random.uniform() - 700;
    EXPECT_NEAR(portable_exp(y), std::exp(y), 6e-16 * std::exp(y)) << y;
  }
  EXPECT_EQ(portable_log(1), 0);
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_exp(-1e300), 0);
}

TEST(Synthetic, HasTheRequestedShapeAndRepeatsItsBits) {
  SyntheticSpec spec{.samples = 50, .dim = 4, .classes = 3, .noise = 0.1, .seed = 7};
  const Dataset data = synthetic(spec);
  EXPECT_EQ(data.rows(), 50u);
  EXPECT_EQ(data.columns, 4u);
  EXPECT_EQ(data.value.size(), 200u);
  const Dataset again = synthetic(spec);
  EXPECT_EQ(again.value, data.value);
  EXPECT_EQ(again.label, data.label);
  spec.seed = 8;
  EXPECT_NE(synthetic(spec).value, data.value);
  // A larger sample of the same problem begins with the same rows.
  spec.seed = 7;
  spec.samples = 60;
  const Dataset longer = synthetic(spec);
  EXPECT_TRUE(std::equal(data.label.begin(), data.label.end(), longer.label.begin()));
}

TEST(Synthetic, LabelsTwoClassesPlusMinusOneAndMoreFromZero) {
  EXPECT_EQ(distinct_labels(synthetic({.samples = 200, .dim = 5, .classes = 2, .noise = 0, .seed = 1})),
            (std::vector<double>{-1, 1}));
  EXPECT_EQ(distinct_labels(synthetic({.samples = 500, .dim = 5, .classes = 4, .noise = 0, .seed = 1})),
            (std::vector<double>{0, 1, 2, 3}));
}

TEST(Synthetic, IsSeparatedByAPerceptronWithoutNoise) {
  const Dataset data = synthetic({.samples = 100, .dim = 3, .classes = 2, .noise = 0, .seed = 2});
  std::array<double, 3> w{};
  int mistakes = 1;
  for (int epoch = 0; epoch < 10000 && mistakes > 0; ++epoch) {
    mistakes = 0;
    for (std::size_t r = 0; r < data.rows(); ++r) {
      const auto a = data.row_values(r);
      if ((w[0] * a[0] + w[1] * a[1] + w[2] * a[2]) * data.label[r] > 0) continue;
      ++mistakes;
      for (std::size_t c = 0; c < 3; ++c) w[c] += data.label[r] * a[c];
    }
  }
  EXPECT_EQ(mistakes, 0);
}

TEST(Synthetic, ReplacesTheNoiseShareOfLabels) {
  for (const std::uint32_t classes : {2u, 5u}) {
    SyntheticSpec spec{.samples = 20000, .dim = 3, .classes = classes, .noise = 0, .seed = 3};
    const Dataset clean = synthetic(spec);
    spec.noise = 0.25;
    const Dataset noisy = synthetic(spec);
    EXPECT_EQ(noisy.value, clean.value);
    int changed = 0;
    for (std::size_t r = 0; r < clean.rows(); ++r) changed += clean.label[r] != noisy.label[r];
    EXPECT_NEAR(changed, 5000, 250) << classes;
  }
}

TEST(Synthetic, IsLinearPlusNoiseForRegression) {
  SyntheticSpec spec{.samples = 20000, .dim = 10, .classes = 0, .noise = 0, .seed = 4};
  const Dataset clean = synthetic(spec);
  spec.noise = 0.5;
  const Dataset noisy = synthetic(spec);
  double variance = 0;
  for (std::size_t r = 0; r < clean.rows(); ++r)
    variance += std::pow(noisy.label[r] - clean.label[r], 2) / 20000;
  EXPECT_NEAR(variance, 0.25, 0.01);
  // Linear: the mean of y a is w/sqrt(d), since E[a a^T] = I. It predicts the clean labels.
  std::array<double, 10> w{};
  for (std::size_t r = 0; r < clean.rows(); ++r) {
    for (std::size_t c = 0; c < 10; ++c) w[c] += clean.label[r] * clean.row_values(r)[c] / 20000;
  }
  double error = 0, power = 0;
  for (std::size_t r = 0; r < clean.rows(); ++r) {
    double prediction = 0;
    for (std::size_t c = 0; c < 10; ++c) prediction += w[c] * clean.row_values(r)[c];
    error += std::pow(prediction - clean.label[r], 2);
    power += std::pow(clean.label[r], 2);
  }
  EXPECT_LT(error, 0.01 * power);
}

TEST(Synthetic, RefusesSizesOutOfRange) {
  const SyntheticSpec good;
  const auto refused = [&](auto change) {
    SyntheticSpec spec = good;
    change(spec);
    const std::string error = data_error([&] { synthetic(spec); });
    EXPECT_EQ(error.rfind("synthetic: ", 0), 0u) << error;
  };
  refused([](SyntheticSpec& s) { s.samples = 0; });
  refused([](SyntheticSpec& s) { s.dim = 0; });
  refused([](SyntheticSpec& s) { s.samples = ~std::size_t{0}; });
  refused([](SyntheticSpec& s) { s.dim = ~std::size_t{0}; });
  refused([](SyntheticSpec& s) { s.classes = 1; });
  refused([](SyntheticSpec& s) { s.classes = 1001; });
  refused([](SyntheticSpec& s) { s.noise = -0.1; });
  refused([](SyntheticSpec& s) { s.noise = 1.1; });
  refused([](SyntheticSpec& s) { s.noise = std::nan(""); });
}

// Rows that are not stored are the same for every order of requests and every process.
TEST(Synthetic, MakesRowsOfAClientOnRequestAboveTheStorageLimit) {
  SyntheticSpec spec{.samples = std::size_t{1} << 30, .dim = 100, .classes = 2, .noise = 0.1, .seed = 5};
  ASSERT_TRUE(is_too_large_to_store(spec));
  SplitSpec split;
  split.clients = 1u << 28;
  const SharedSamples samples = draw_synthetic(spec, split);
  EXPECT_EQ(samples.clients(), split.clients);
  EXPECT_EQ(samples.train.columns, 100u);
  EXPECT_EQ(samples.made.labels, (std::vector<double>{-1, 1}));
  const ClientDataset last = samples.part(split.clients - 1), first = samples.part(0),
                      again = samples.part(split.clients - 1);
  EXPECT_EQ(last.train.rows(), 4u);
  EXPECT_EQ(samples.train_count(split.clients - 1), 4u);
  EXPECT_EQ(last.train.value, again.train.value);
  EXPECT_EQ(last.train.label, again.train.label);
  EXPECT_NE(last.train.value, first.train.value);
  double sum = 0, squares = 0;
  for (std::uint32_t i = 0; i < 500; ++i)
    for (const double v : samples.part(i).train.value) sum += v, squares += v * v;
  EXPECT_NEAR(sum / 200'000, 0, 0.015);
  EXPECT_NEAR(squares / 200'000, 1, 0.02);
}

TEST(Synthetic, LetsClientsDrawRowsAboveTheStorageLimit) {
  const SyntheticSpec spec{.samples = 3'000'000'000, .dim = 10, .classes = 0, .noise = 0.1, .seed = 5};
  SplitSpec split;
  split.clients = 1000;
  split.samples_per_client = 7;
  const SharedSamples samples = draw_synthetic(spec, split);
  EXPECT_EQ(samples.part(999).train.rows(), 7u);
  EXPECT_NE(samples.part(998).train.label, samples.part(999).train.label);
}

TEST(Synthetic, RefusesSplitsThatNeedAllRowsAboveTheStorageLimit) {
  const SyntheticSpec spec{.samples = std::size_t{1} << 30, .dim = 100, .classes = 2};
  SplitSpec split;
  split.clients = 10;
  split.partition = PartitionKind::kByLabel;
  EXPECT_THROW(draw_synthetic(spec, split), DataError);
  split.partition = PartitionKind::kIid;
  split.test_share = 0.1;
  EXPECT_THROW(draw_synthetic(spec, split), DataError);
  EXPECT_THROW(make_synthetic(spec), DataError);
}

}  // namespace
}  // namespace gradwire
