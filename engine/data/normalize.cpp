#include "engine/data/normalize.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gradwire {
namespace {

// The largest size of a mean or a value in the sums of a client, and of its sum of squares. Squares of
// differences of such means, times 2^64 samples, are finite.
constexpr double kLargestMean = 1e140, kLargestSquares = 1e291;
constexpr std::uint64_t kMostSamples = UINT32_MAX;  // at one client

// The values of one feature.
struct FeatureValues {
  std::uint64_t count = 0;
  double mean = 0, squares = 0;  // squares: sum of (value - mean)^2
  double low = HUGE_VAL, high = -HUGE_VAL;

  // Adds a group of values by the formula of Chan, Golub and LeVeque, which keeps the digits that a sum of
  // squares would lose.
  void add(const FeatureValues& more) {
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

// Computes the sums of one client after another, with the same memory.
class SumsOfRows {
 public:
  explicit SumsOfRows(Normalize kind) : is_standard_(kind == Normalize::kStandard) {}

  const ClientSums& of(const Dataset& data, const ClientRows& rows) {
    const auto each_value = [&](const auto& see) {
      for (std::size_t j = 0; j < rows.count; ++j) {
        const auto columns = data.row_columns(rows[j]);
        const auto values = data.row_values(rows[j]);
        for (std::size_t k = 0; k < columns.size(); ++k) see(own_[columns[k]], columns[k], values[k]);
      }
    };
    own_.resize(data.columns);
    each_value([&](FeatureValues& own, std::uint32_t column, double value) {
      if (own.count++ == 0) touched_.push_back(column);
      own.mean += value;
      own.low = std::min(own.low, value);
      own.high = std::max(own.high, value);
    });
    for (const std::uint32_t column : touched_) {
      FeatureValues& own = own_[column];
      own.mean = own.low < own.high ? own.mean / static_cast<double>(own.count) : own.low;
    }
    if (is_standard_)
      each_value([](FeatureValues& own, std::uint32_t, double value) {
        const double step = value - own.mean;
        own.squares += step * step;
      });
    std::ranges::sort(touched_);
    sums_.columns = data.columns;
    sums_.samples = rows.count;
    sums_.features.clear();
    for (const std::uint32_t column : touched_) {
      const FeatureValues own = std::exchange(own_[column], {});
      sums_.features.push_back({column, static_cast<std::uint32_t>(own.count),
                                is_standard_ ? own.mean : own.low, is_standard_ ? own.squares : own.high});
    }
    touched_.clear();
    return sums_;
  }

 private:
  const bool is_standard_;
  std::vector<FeatureValues> own_;
  std::vector<std::uint32_t> touched_;  // features that this client has
  ClientSums sums_;
};

// Joins the sums of all clients.
class JoinedSums {
 public:
  explicit JoinedSums(Normalize kind) : kind_(kind) {}

  void add(const ClientSums& client) {
    all_.resize(std::max(all_.size(), client.columns));
    samples_ += client.samples;
    for (const FeatureSums& sums : client.features)
      all_[sums.feature].add(is_standard() ? FeatureValues{sums.count, sums.first, sums.second}
                                           : FeatureValues{sums.count, 0, 0, sums.first, sums.second});
  }

  Normalization map() const {
    Normalization map;
    map.kind = kind_;
    for (const FeatureValues& values : all_) add_feature(map, values);
    return map;
  }

 private:
  bool is_standard() const { return kind_ == Normalize::kStandard; }

  void add_feature(Normalization& map, const FeatureValues& stored) const {
    FeatureValues all = stored;  // with the zeros, which are not stored
    if (stored.count < samples_) all.add({samples_ - stored.count, 0, 0, 0, 0});
    double shift = 0, scale = 1;
    if (all.count > 0) {
      shift = is_standard() ? all.mean : all.low;
      scale = is_standard() ? std::sqrt(all.squares / static_cast<double>(all.count)) : all.high - all.low;
      if (kSparseFactor * stored.count < samples_ && shift != 0) {
        if (!is_standard()) scale = std::max(-all.low, all.high);
        shift = 0;
        ++map.sparse;
      }
    }
    if (!std::isfinite(scale) || !std::isfinite(shift))
      throw DataError("problem.normalize = \"" + std::string(normalize_word(kind_)) +
                      "\": the sums of feature " + std::to_string(map.shift.size() + 1) +
                      " are not finite; divide its values by a constant");
    map.shift.push_back(shift);
    map.scale.push_back(scale > 0 ? scale : 1);
  }

  const Normalize kind_;
  std::vector<FeatureValues> all_;
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

ClientSums sums_of(const Dataset& data, Normalize kind) {
  return SumsOfRows(kind).of(data, {.first = 0, .count = data.rows()});
}

Status check_sums(const ClientSums& sums, Normalize kind) {
  if (sums.samples > kMostSamples) return Error{"the sums are of more than 2^32-1 samples"};
  std::uint64_t next = 0;
  for (const FeatureSums& f : sums.features) {
    const std::string name = "the sums of feature " + std::to_string(std::uint64_t{f.feature} + 1);
    if (f.feature < next || f.feature >= sums.columns)
      return Error{name + " are not in ascending order, or beyond its " + std::to_string(sums.columns) +
                   " features"};
    next = std::uint64_t{f.feature} + 1;
    if (f.count == 0 || f.count > sums.samples)
      return Error{name + " are of " + std::to_string(f.count) + " values, but it has " +
                   std::to_string(sums.samples) + " samples"};
    const bool is_standard = kind == Normalize::kStandard;
    if (!(std::fabs(f.first) <= kLargestMean) ||
        !(std::fabs(f.second) <= (is_standard ? kLargestSquares : kLargestMean)))
      return Error{name + " are not finite, or too large; divide its values by a constant"};
    const bool is_possible = is_standard ? f.second >= 0 : f.first <= f.second;
    const bool is_of_one = is_standard ? f.second == 0 : f.first == f.second;
    if (!is_possible || (f.count == 1 && !is_of_one)) return Error{name + " are not those of any values"};
  }
  return Unit{};
}

Normalization normalization_of(std::span<const ClientSums> clients, Normalize kind) {
  JoinedSums joined(kind);
  for (const ClientSums& sums : clients) joined.add(sums);
  return joined.map();
}

std::optional<ScaleGap> widest_scale_gap(std::span<const ClientSums> clients, Normalize kind) {
  constexpr double kWide = 100;
  struct Sizes {
    double small = 0, large = 0;  // 0 if no client has the feature
    std::uint32_t small_at = 0, large_at = 0;
  };
  std::vector<Sizes> sizes;
  for (std::uint32_t client = 0; client < clients.size(); ++client)
    for (const FeatureSums& sums : clients[client].features) {
      const double size = kind == Normalize::kMinMax
                              ? std::max(std::abs(sums.first), std::abs(sums.second))
                              : std::sqrt(sums.first * sums.first + sums.second / sums.count);
      if (sums.feature >= sizes.size()) sizes.resize(sums.feature + 1);
      Sizes& of = sizes[sums.feature];
      if (of.large == 0 || size < of.small) of.small = size, of.small_at = client;
      if (size > of.large) of.large = size, of.large_at = client;
    }
  std::optional<ScaleGap> widest;
  for (std::size_t feature = 0; feature < sizes.size(); ++feature) {
    const Sizes& of = sizes[feature];
    const double factor = of.small > 0 ? of.large / of.small : 0;
    if (factor > (widest ? widest->factor : kWide)) widest = {feature, of.small_at, of.large_at, factor};
  }
  return widest;
}

Normalization normalization_of(const Dataset& data, const Shares& shares, Normalize kind) {
  if (kind == Normalize::kUnitRows) return {kind, {}, {}, 0};
  JoinedSums joined(kind);
  SumsOfRows sums(kind);
  std::vector<std::uint32_t> work;
  for (std::uint32_t i = 0; i < shares.clients(); ++i) joined.add(sums.of(data, shares.rows(i, work)));
  return joined.map();
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
