// Helpers of the tests of oracles: small random data, a dense copy of it, finite differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <span>
#include <vector>

#include "base/random.h"
#include "engine/data/dataset.h"
#include "gradwire/oracle.h"

namespace gradwire {

using DenseRows = std::vector<std::vector<double>>;

inline DenseRows dense_rows(const Dataset& data) {
  DenseRows rows(data.rows(), std::vector<double>(data.columns));
  for (std::size_t r = 0; r < data.rows(); ++r) {
    for (std::size_t k = 0; k < data.row_columns(r).size(); ++k) {
      rows[r][data.row_columns(r)[k]] = data.row_values(r)[k];
    }
  }
  return rows;
}

inline Dataset sparse_data(const DenseRows& rows, std::vector<double> labels, std::size_t columns) {
  Dataset data;
  data.columns = columns;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (row[c] == 0) continue;
      data.column.push_back(static_cast<std::uint32_t>(c));
      data.value.push_back(row[c]);
    }
    data.row_start.push_back(data.column.size());
  }
  data.label = std::move(labels);
  return data;
}

// Returns data in which about the share `share` of the entries is nonzero. Row 0 has no nonzero. Labels cycle
// through `labels`, or are normal numbers if it is empty.
inline Dataset random_data(std::size_t rows, std::size_t columns, double share, std::vector<double> labels,
                           std::uint64_t seed = 1) {
  Random random(seed, "oracle tests");
  DenseRows dense(rows, std::vector<double>(columns));
  std::vector<double> label;
  for (std::size_t r = 0; r < rows; ++r) {
    for (double& entry : dense[r]) entry = r > 0 && random.uniform() < share ? random.normal() : 0.0;
    label.push_back(labels.empty() ? random.normal() : labels[(r + r / 3) % labels.size()]);
  }
  return sparse_data(dense, label, columns);
}

inline std::vector<double> random_point(std::size_t dim, double scale, std::uint64_t seed = 2) {
  Random random(seed, "oracle test point");
  std::vector<double> x(dim);
  for (double& entry : x) entry = scale * random.normal();
  return x;
}

template <class Real>
struct Evaluated {
  Real loss;
  std::vector<Real> gradient;
};

template <class Real>
Evaluated<Real> evaluate(Oracle<Real>& oracle, const std::vector<double>& x, Batch batch = {}) {
  const std::vector<Real> point(x.begin(), x.end());
  Evaluated<Real> result{Real(0),
                         std::vector<Real>(x.size(), Real(77))};  // the oracle overwrites and never adds
  result.loss = oracle.loss_and_gradient(point, batch, result.gradient);
  return result;
}

// Checks central differences in every coordinate.
inline void expect_matches_finite_differences(Oracle<double>& oracle, std::vector<double> x,
                                              double tolerance = 1e-7) {
  const Evaluated<double> at = evaluate(oracle, x);
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double center = x[j], step = 1e-5 * std::max(1.0, std::abs(center));
    x[j] = center + step;
    const double above = evaluate(oracle, x).loss;
    x[j] = center - step;
    const double below = evaluate(oracle, x).loss;
    x[j] = center;
    EXPECT_NEAR(at.gradient[j], (above - below) / (2 * step), tolerance * std::max(1.0, std::abs(at.loss)))
        << "coordinate " << j;
  }
}

// Checks that the mean over single samples is the whole gradient, that a batch with repeats is the mean over
// its entries, and that equal calls give equal bits.
inline void expect_batches_agree(Oracle<double>& oracle, const std::vector<double>& x) {
  const Evaluated<double> full = evaluate(oracle, x);
  const std::size_t m = oracle.sample_count();
  std::vector<Evaluated<double>> single;
  for (std::uint32_t r = 0; r < m; ++r) single.push_back(evaluate(oracle, x, std::vector<std::uint32_t>{r}));
  std::vector<std::uint32_t> repeated = {0, static_cast<std::uint32_t>(m - 1), 0,
                                         static_cast<std::uint32_t>(m / 2)};
  std::vector<std::uint32_t> everything;
  for (std::uint32_t r = 0; r < m; ++r) everything.push_back(r);
  for (const auto& batch : {repeated, everything}) {
    const Evaluated<double> got = evaluate(oracle, x, batch);
    double loss = 0;
    std::vector<double> gradient(x.size());
    for (const std::uint32_t r : batch) {
      loss += single[r].loss / static_cast<double>(batch.size());
      for (std::size_t j = 0; j < x.size(); ++j) {
        gradient[j] += single[r].gradient[j] / static_cast<double>(batch.size());
      }
    }
    EXPECT_NEAR(got.loss, loss, 1e-12 * std::max(1.0, std::abs(loss)));
    for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(got.gradient[j], gradient[j], 1e-12) << j;
  }
  const Evaluated<double> listed = evaluate(oracle, x, everything);
  EXPECT_EQ(listed.loss, full.loss);
  EXPECT_EQ(listed.gradient, full.gradient);
  const Evaluated<double> again = evaluate(oracle, x);
  EXPECT_EQ(again.loss, full.loss);
  EXPECT_EQ(again.gradient, full.gradient);
}

inline void expect_float_agrees(Oracle<float>& narrow, Oracle<double>& wide, const std::vector<double>& x) {
  const auto a = evaluate(narrow, x);
  const auto b = evaluate(wide, x);
  EXPECT_NEAR(a.loss, b.loss, 1e-5 * std::max(1.0, std::abs(b.loss)));
  double scale = 0;
  for (const double g : b.gradient) scale = std::max(scale, std::abs(g));
  for (std::size_t j = 0; j < x.size(); ++j)
    EXPECT_NEAR(a.gradient[j], b.gradient[j], 1e-5 * std::max(1.0, scale));
}

}  // namespace gradwire
