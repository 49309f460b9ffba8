// Normalisation, compared with plain loops over dense rows.
#include "engine/data/normalize.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/support/data_files.h"

namespace gradwire {
namespace {

using RowsByHand = std::vector<std::vector<double>>;

Dataset sparse_data(const RowsByHand& rows) {
  Dataset data;
  data.columns = rows.empty() ? 0 : rows[0].size();
  for (const std::vector<double>& row : rows) {
    for (std::size_t j = 0; j < row.size(); ++j)
      if (row[j] != 0) data.column.push_back(static_cast<std::uint32_t>(j)), data.value.push_back(row[j]);
    data.row_start.push_back(data.column.size());
    data.label.push_back(1);
  }
  return data;
}

RowsByHand dense_rows(const Dataset& data) {
  RowsByHand rows;
  for (std::size_t r = 0; r < data.rows(); ++r) {
    rows.emplace_back(data.columns);
    EXPECT_TRUE(std::ranges::is_sorted(data.row_columns(r)));
    for (std::size_t k = 0; k < data.row_columns(r).size(); ++k) {
      EXPECT_NE(data.row_values(r)[k], 0);
      rows[r][data.row_columns(r)[k]] = data.row_values(r)[k];
    }
  }
  return rows;
}

RowsByHand normalized(const RowsByHand& rows, Normalize kind, std::uint32_t clients = 1) {
  Dataset data = sparse_data(rows);
  normalize(data, normalization_of(data, Shares::equal(clients, rows.size()), kind));
  return dense_rows(data);
}

RowsByHand random_rows(std::size_t count, std::size_t columns, double zeros) {
  std::mt19937_64 draw(7);
  RowsByHand rows(count, std::vector<double>(columns));
  for (auto& row : rows)
    for (std::size_t j = 0; j < columns; ++j) {
      const double u = static_cast<double>(draw() >> 11) * 0x1p-53;
      const double z = static_cast<double>(draw() >> 11) * 0x1p-53;
      row[j] = z < zeros ? 0 : (u - 0.3) * std::pow(10, static_cast<double>(j)) + 1e3;
    }
  return rows;
}

TEST(Normalize, StandardGivesMeanZeroAndDeviationOne) {
  const RowsByHand rows = random_rows(300, 6, 0.2);
  for (const std::uint32_t clients : {1u, 7u, 300u}) {
    const RowsByHand out = normalized(rows, Normalize::kStandard, clients);
    for (std::size_t j = 0; j < 6; ++j) {
      double mean = 0, squares = 0;
      for (const auto& row : rows) mean += row[j] / 300;
      for (const auto& row : rows) squares += (row[j] - mean) * (row[j] - mean) / 300;
      for (std::size_t r = 0; r < rows.size(); ++r)
        EXPECT_NEAR(out[r][j], (rows[r][j] - mean) / std::sqrt(squares), 1e-11);
    }
  }
}

TEST(Normalize, KeepsTheDigitsOfValuesThatHardlyDiffer) {
  RowsByHand rows;
  for (int r = 0; r < 100; ++r) rows.push_back({1e9 + r % 2});
  const RowsByHand out = normalized(rows, Normalize::kStandard, 3);
  for (std::size_t r = 0; r < rows.size(); ++r) EXPECT_NEAR(out[r][0], r % 2 == 0 ? -1 : 1, 1e-6);
}

TEST(Normalize, MinMaxGivesZeroToOne) {
  EXPECT_EQ(normalized({{2, -4}, {6, 0}, {4, 4}}, Normalize::kMinMax),
            (RowsByHand{{0, 0}, {1, 0.5}, {0.5, 1}}));
  EXPECT_EQ(normalized({{0, 8}, {2, 0}, {1, 4}}, Normalize::kMinMax, 3),
            (RowsByHand{{0, 1}, {1, 0}, {0.5, 0.5}}));
}

TEST(Normalize, UnitRowsHaveNormOneAndZerosStay) {
  EXPECT_EQ(normalized({{3, -4}, {0, 0}, {0, 1e-200}, {1e200, 0}}, Normalize::kUnitRows),
            (RowsByHand{{0.6, -0.8}, {0, 0}, {0, 1}, {1, 0}}));
}

TEST(Normalize, TurnsAConstantFeatureIntoZeros) {
  for (const Normalize kind : {Normalize::kStandard, Normalize::kMinMax})
    EXPECT_EQ(normalized({{0.1, 1}, {0.1, 2}, {0.1, 3}}, kind)[1][0], 0);
  EXPECT_EQ(normalized({{0, 1}, {0, 3}}, Normalize::kStandard), (RowsByHand{{0, -1}, {0, 1}}));
}

TEST(Normalize, OnlyDividesSparseFeaturesAndSaysSo) {
  RowsByHand rows(40, {0, 0, 1});
  rows[3] = {6, -2, 2};
  Dataset data = sparse_data(rows);
  const Shares shares = Shares::equal(4, rows.size());
  const Normalization standard = normalization_of(data, shares, Normalize::kStandard);
  EXPECT_EQ(standard.shift[0], 0);
  EXPECT_NEAR(standard.scale[0], 6 * std::sqrt(1.0 / 40 - 1.0 / 1600), 1e-14);
  EXPECT_NEAR(standard.shift[2], 1 + 1.0 / 40, 1e-15);
  EXPECT_EQ(
      sparse_warning(standard),
      "problem.normalize = \"standard\": 2 of 3 features are zero in more than nine of ten samples; these "
      "are divided by their standard deviation but not shifted, so that zeros stay zeros");
  const Normalization minmax = normalization_of(data, shares, Normalize::kMinMax);
  EXPECT_EQ(minmax.shift, (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(minmax.scale, (std::vector<double>{6, 2, 1}));
  EXPECT_EQ(minmax.sparse, 1u);
  normalize(data, minmax);
  EXPECT_EQ(data.value, (std::vector<double>{1, -1, 1}));
}

TEST(Normalize, GivesTestSamplesTheMapOfTheTrainingSamples) {
  const Dataset train = sparse_data({{1, 2}, {3, 2}});
  const Normalization map = normalization_of(train, Shares::equal(1, 2), Normalize::kStandard);
  Dataset test = sparse_data({{5, 3, 7}, {0, 0, 0}});  // has a feature more
  normalize(test, map);
  EXPECT_EQ(dense_rows(test), (RowsByHand{{3, 1, 7}, {-2, -2, 0}}));
  Dataset narrow = sparse_data({{4}});  // lacks a feature, which is 0
  normalize(narrow, map);
  EXPECT_EQ(dense_rows(narrow), (RowsByHand{{2, -2}}));
}

TEST(Normalize, CountsASampleOnceForEachClientThatHasIt) {
  const Dataset data = sparse_data({{0}, {3}, {6}});
  const Shares twice = Shares::copied({0, 1, 2, 3}, {.count = 2, .placement = ReplicaPlacement::kRing});
  EXPECT_EQ(normalization_of(data, twice, Normalize::kStandard).shift, std::vector<double>{3});
  const Shares drawn = Shares::drawn(50, 3, 1, 1);
  std::vector<std::uint32_t> work;
  double sum = 0;
  for (std::uint32_t i = 0; i < 50; ++i) sum += 3.0 * static_cast<double>(drawn.rows(i, work)[0]);
  EXPECT_NEAR(normalization_of(data, drawn, Normalize::kStandard).shift[0], sum / 50, 1e-12);
}

TEST(Normalize, RefusesSumsThatAreNotFinite) {
  const Dataset data = sparse_data({{1, 1e200}, {2, -1e200}});
  EXPECT_EQ(data_error([&] { normalization_of(data, Shares::equal(1, 2), Normalize::kStandard); }),
            "problem.normalize = \"standard\": the sums of feature 2 are not finite; divide its values by a "
            "constant");
}

// Returns the rows [first, end).
Dataset rows_between(const Dataset& data, std::size_t first, std::size_t end) {
  std::vector<std::uint32_t> rows;
  for (std::size_t r = first; r < end; ++r) rows.push_back(static_cast<std::uint32_t>(r));
  return select_rows(data, rows);
}

TEST(Normalize, JoinsSumsOfClientsToTheBitsOfTheJoinedData) {
  for (const double zeros : {0.0, 0.5, 0.95}) {
    RowsByHand rows = random_rows(61, 6, zeros);
    for (RowsByHand::size_type r = 0; r < rows.size(); ++r) {
      rows[r].push_back(0.1);                      // constant everywhere
      rows[r].push_back(r < 20 ? 0.1 : 0.7);       // constant at each of some clients
      rows[r].push_back(r < 20 ? 0 : rows[r][0]);  // absent at some clients
      rows[r].push_back(r == 60 ? 1e9 : 0);        // in one sample of one client
    }
    const Dataset data = sparse_data(rows);
    const std::vector<std::uint32_t> start = {0, 20, 21, 21, 60, 61};  // one client has no sample
    for (const Normalize kind : {Normalize::kStandard, Normalize::kMinMax}) {
      std::vector<ClientSums> sums;
      for (std::size_t i = 0; i + 1 < start.size(); ++i) {
        sums.push_back(sums_of(rows_between(data, start[i], start[i + 1]), kind));
        EXPECT_TRUE(check_sums(sums.back(), kind)) << check_sums(sums.back(), kind).error().message;
      }
      const Normalization all = normalization_of(data, Shares::ranges(start), kind);
      EXPECT_EQ(normalization_of(sums, kind), all) << zeros;
      EXPECT_EQ(all.scale[6], 1) << "constant";
      EXPECT_EQ(all.shift[6], 0.1);
    }
  }
}

TEST(Normalize, JoinsClientsThatLackTheLastFeatures) {
  const Dataset narrow = sparse_data({{1}, {3}}), wide = sparse_data({{5, 0, 8}, {7, 0, 0}});
  const std::vector<ClientSums> sums = {sums_of(narrow, Normalize::kMinMax),
                                        sums_of(wide, Normalize::kMinMax)};
  const Normalization map = normalization_of(sums, Normalize::kMinMax);
  EXPECT_EQ(map.shift, (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(map.scale, (std::vector<double>{6, 1, 8}));
}

TEST(Normalize, FindsTheFeatureWhoseUnitsDiffer) {
  const RowsByHand metres = {{1.7, 0, 3, -1}, {1.9, 5, 3, 1}},
                   millimetres = {{1700, 5, 900, 1}, {1900, 0, 0, -1}};
  const RowsByHand absent = {{0, 0, 0, 0}};
  for (const Normalize kind : {Normalize::kStandard, Normalize::kMinMax}) {
    const auto gap = [&](const std::vector<RowsByHand>& of) {
      std::vector<ClientSums> sums;
      for (const RowsByHand& rows : of) sums.push_back(sums_of(sparse_data(rows), kind));
      return widest_scale_gap(sums, kind);
    };
    const auto found = gap({absent, metres, metres, millimetres});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->feature, 0u);
    EXPECT_EQ(found->small, 1u);
    EXPECT_EQ(found->large, 3u);
    EXPECT_NEAR(found->factor, 1000, 1e-9);
    EXPECT_FALSE(gap({metres, metres, absent}));
    EXPECT_FALSE(gap({{{1}}, {{100}}})) << "not above 100";
    EXPECT_FALSE(gap({{{-1}, {1}}, {{0.5}, {2}}})) << "means near zero are no sign of other units";
  }
}

TEST(Normalize, TellsOfAClientOnlyWhatItsKindNeeds) {
  const Dataset data = sparse_data({{2, 0, 0.1}, {6, 0, 0.1}, {0, 0, 0.1}});
  const auto of = [&](Normalize kind) { return sums_of(data, kind).features; };
  EXPECT_EQ(of(Normalize::kStandard), (std::vector<FeatureSums>{{0, 2, 4, 8}, {2, 3, 0.1, 0}}));
  EXPECT_EQ(of(Normalize::kMinMax), (std::vector<FeatureSums>{{0, 2, 2, 6}, {2, 3, 0.1, 0.1}}));
}

TEST(Normalize, RefusesHostileSums) {
  const double inf = HUGE_VAL, nan = std::nan("");
  using Lists = std::vector<std::vector<FeatureSums>>;
  const auto expect_all = [](Normalize kind, const Lists& lists, bool good) {
    for (const auto& features : lists) {
      const Status status = check_sums({.columns = 4, .samples = 10, .features = features}, kind);
      EXPECT_EQ(status.has_value(), good) << normalize_word(kind) << ", list " << &features - lists.data();
      if (!good && !status) {
        EXPECT_NE(status.error().message.find("the sums of feature "), std::string::npos);
      }
    }
  };
  const Lists bad_for_all = {{{4, 1, 1, 1}},                // a feature beyond the last
                             {{1, 2, 1, 1}, {1, 2, 1, 1}},  // twice
                             {{2, 2, 1, 1}, {1, 2, 1, 1}},  // not ascending
                             {{0, 0, 1, 1}},                // of no value
                             {{0, 11, 1, 1}},               // of more values than samples
                             {{0, 2, nan, 1}},
                             {{0, 2, 1, nan}},
                             {{0, 2, -inf, 1}},
                             {{0, 2, 1, inf}},
                             {{0, 2, 1e141, 1e141}}};
  for (const Normalize kind : {Normalize::kStandard, Normalize::kMinMax})
    expect_all(kind, bad_for_all, false);
  expect_all(Normalize::kStandard, {{{0, 2, 1, -1e-300}}, {{0, 1, 1, 0.5}}, {{0, 2, 1, 1e292}}}, false);
  expect_all(Normalize::kMinMax, {{{0, 2, 1, 0.5}}, {{0, 1, 1, 2}}, {{0, 2, 1, 1e141}}}, false);
  expect_all(Normalize::kStandard, {{}, {{0, 1, 1, 0}, {3, 10, -5, 1e290}}}, true);
  expect_all(Normalize::kMinMax, {{}, {{0, 1, 1, 1}, {3, 10, -5, 1e140}}}, true);
  EXPECT_FALSE(check_sums({.columns = 1, .samples = 1ULL << 32, .features = {}}, Normalize::kMinMax));
}

TEST(Normalize, JoinsTheLargestSumsThatItAccepts) {
  const ClientSums low{1, UINT32_MAX, {{0, UINT32_MAX, -1e140, 1e291}}},
      high{1, UINT32_MAX, {{0, UINT32_MAX, 1e140, 1e291}}};
  ASSERT_TRUE(check_sums(low, Normalize::kStandard));
  std::vector<ClientSums> many;
  for (int k = 0; k < 1000; ++k) many.push_back(k % 2 == 0 ? low : high);
  EXPECT_NO_THROW(normalization_of(many, Normalize::kStandard));
}

}  // namespace
}  // namespace gradwire
