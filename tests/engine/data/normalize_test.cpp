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

}  // namespace
}  // namespace gradwire
