#include "engine/data/normalize.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gradwire {
namespace {

// The values of one feature that are stored, that is, not zero.
struct StoredValues {
  std::uint64_t count = 0;
  double mean = 0, squares = 0;  // squares: sum of (value - mean)^2
  double low = HUGE_VAL, high = -HUGE_VAL;

  // Adds a group of values by the formula of Chan, Golub and LeVeque, which keeps the digits that a sum of
  // squares would lose.
  void add(const StoredValues& more) {
    if (more.count == 0) return;
    const double all = static_cast<double>(count + more.count), share = static_cast<double>(more.count) / all;
    const double step = more.mean - mean;
    squares += more.squares + step * step * static_cast<double>(count) * share;
    mean += step * share;
    count += more.count;
    low = std::min(low, more.low);
    high = std::max(high, more.high);
  }
};

// The sums of all clients, to which each client adds its own.
class Sums {
 public:
  explicit Sums(std::size_t columns) : all_(columns), own_(columns) {}

  void add_client(const Dataset& data, const ClientRows& rows) {
    const auto each_value = [&](const auto& see) {
      for (std::size_t j = 0; j < rows.count; ++j) {
        const auto columns = data.row_columns(rows[j]);
        const auto values = data.row_values(rows[j]);
        for (std::size_t k = 0; k < columns.size(); ++k) see(columns[k], values[k]);
      }
    };
    each_value([&](std::uint32_t column, double value) {
      StoredValues& own = own_[column];
      if (own.count++ == 0) touched_.push_back(column);
      own.mean += value;
      own.low = std::min(own.low, value);
      own.high = std::max(own.high, value);
    });
    for (const std::uint32_t column : touched_) own_[column].mean /= static_cast<double>(own_[column].count);
    each_value([&](std::uint32_t column, double value) {
      const double step = value - own_[column].mean;
      own_[column].squares += step * step;
    });
    for (const std::uint32_t column : std::exchange(touched_, {}))
      all_[column].add(std::exchange(own_[column], {}));
    samples_ += rows.count;
  }

  std::uint64_t samples() const { return samples_; }
  std::uint64_t stored(std::size_t column) const { return all_[column].count; }
  // Returns the values of a feature with their zeros.
  StoredValues with_zeros(std::size_t column) const {
    StoredValues values = all_[column];
    if (values.count < samples_)
      values.add({.count = samples_ - values.count, .mean = 0, .squares = 0, .low = 0, .high = 0});
    return values;
  }

 private:
  std::vector<StoredValues> all_, own_;
  std::vector<std::uint32_t> touched_;  // features that this client has
  std::uint64_t samples_ = 0;
};

void normalize_rows(Dataset& data) {
  for (std::size_t r = 0; r < data.rows(); ++r) {
    const std::span row(data.value.data() + data.row_start[r], data.row_start[r + 1] - data.row_start[r]);
    double largest = 0, squares = 0;  // divides by the largest value first, whose square may overflow
    for (const double value : row) largest = std::max(largest, std::fabs(value));
    for (const double value : row) squares += (value / largest) * (value / largest);
    const double root = std::sqrt(squares);
    for (double& value : row) value = value / largest / root;
  }
}

}  // namespace

Normalization normalization_of(const Dataset& data, const Shares& shares, Normalize kind) {
  Normalization map;
  map.kind = kind;
  if (kind == Normalize::kUnitRows) return map;
  Sums sums(data.columns);
  std::vector<std::uint32_t> work;
  for (std::uint32_t i = 0; i < shares.clients(); ++i) sums.add_client(data, shares.rows(i, work));
  for (std::size_t column = 0; column < data.columns; ++column) {
    const StoredValues all = sums.with_zeros(column);
    const bool is_sparse = kSparseFactor * sums.stored(column) < sums.samples();
    double shift = 0, scale = 1;
    if (all.low < all.high) {
      const bool is_standard = kind == Normalize::kStandard;
      scale = is_standard ? std::sqrt(all.squares / static_cast<double>(all.count)) : all.high - all.low;
      shift = is_standard ? all.mean : all.low;
      if (is_sparse && shift != 0) {
        if (!is_standard) scale = std::max(-all.low, all.high);
        shift = 0;
        ++map.sparse;
      }
    } else if (all.count > 0) {
      shift = all.low;
    }
    if (!std::isfinite(scale) || !std::isfinite(shift))
      throw DataError("problem.normalize = \"" + std::string(normalize_word(kind)) +
                      "\": the sums of feature " + std::to_string(column + 1) +
                      " are not finite; divide its values by a constant");
    map.shift.push_back(shift);
    map.scale.push_back(scale > 0 ? scale : 1);
  }
  return map;
}

void normalize(Dataset& data, const Normalization& map) {
  if (map.kind == Normalize::kUnitRows) return normalize_rows(data);
  struct Shifted {
    std::uint32_t column;
    double zero;  // the new value of a zero
  };
  data.columns = std::max(data.columns, map.shift.size());  // these data may lack the last features
  std::vector<Shifted> shifted;
  for (std::size_t column = 0; column < map.shift.size(); ++column)
    if (map.shift[column] != 0)
      shifted.push_back({static_cast<std::uint32_t>(column), (0 - map.shift[column]) / map.scale[column]});
  std::vector<std::uint64_t> row_start = {0};
  std::vector<std::uint32_t> columns;
  std::vector<double> values;
  row_start.reserve(data.row_start.size());
  const auto add = [&](std::uint32_t column, double value) {
    if (value == 0) return;
    columns.push_back(column);
    values.push_back(value);
  };
  for (std::size_t r = 0; r < data.rows(); ++r) {
    const auto row_columns = data.row_columns(r);
    const auto row_values = data.row_values(r);
    auto zero = shifted.begin();
    for (std::size_t k = 0; k < row_columns.size(); ++k) {
      const std::uint32_t column = row_columns[k];
      for (; zero != shifted.end() && zero->column < column; ++zero) add(zero->column, zero->zero);
      if (zero != shifted.end() && zero->column == column) ++zero;
      const bool is_known = column < map.shift.size();
      add(column, is_known ? (row_values[k] - map.shift[column]) / map.scale[column] : row_values[k]);
    }
    for (; zero != shifted.end(); ++zero) add(zero->column, zero->zero);
    row_start.push_back(columns.size());
  }
  data.row_start = std::move(row_start);
  data.column = std::move(columns);
  data.value = std::move(values);
}

std::string sparse_warning(const Normalization& map) {
  if (map.sparse == 0) return "";
  return "problem.normalize = \"" + std::string(normalize_word(map.kind)) +
         "\": " + std::to_string(map.sparse) + " of " + std::to_string(map.scale.size()) +
         " features are zero in more than nine of ten samples; these are divided by their " +
         (map.kind == Normalize::kStandard ? "standard deviation" : "largest absolute value") +
         " but not shifted, so that zeros stay zeros";
}

}  // namespace gradwire
