#include "fl_server/sessions/join.h"

#include <algorithm>
#include <cmath>

#include "compressors/payload.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

bool is_constant(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

Result<ClientInfo> read_join(const wire::Join& join, ClientInfo info) {
  if (!join.has_columns() || !join.has_sample_count() || !join.has_test_count())
    return Error{"Join: columns, sample_count or test_count is missing"};
  if (join.columns() > kMaxDim) return Error{"Join: too many columns"};
  info.columns = join.columns();
  info.sample_count = join.sample_count();
  info.test_count = join.test_count();
  info.labels.assign(join.labels().begin(), join.labels().end());
  const auto unordered = [](double a, double b) { return !(a < b); };
  if (!std::all_of(info.labels.begin(), info.labels.end(), [](double l) { return std::isfinite(l); }) ||
      std::adjacent_find(info.labels.begin(), info.labels.end(), unordered) != info.labels.end())
    return Error{"Join: labels are not finite and ascending"};
  info.alphabet = join.alphabet();
  const auto no_later = [](char a, char b) {
    return static_cast<unsigned char>(a) >= static_cast<unsigned char>(b);
  };
  if (std::adjacent_find(info.alphabet.begin(), info.alphabet.end(), no_later) != info.alphabet.end())
    return Error{"Join: the letters of the alphabet are not ascending"};
  if (join.has_smoothness()) info.smoothness = join.smoothness();
  if (join.has_convexity()) info.convexity = join.convexity();
  if (join.has_sample_smoothness()) info.sample_smoothness = join.sample_smoothness();
  if (join.has_sample_smoothness_max()) info.sample_smoothness_max = join.sample_smoothness_max();
  if (join.has_data_hash()) info.data_hash = join.data_hash();
  if (join.has_table_hash()) info.table_hash = join.table_hash();
  if (!is_constant(join.smoothness()) || !is_constant(join.convexity()) ||
      !is_constant(join.sample_smoothness()) || !is_constant(join.sample_smoothness_max()))
    return Error{"Join: a smoothness constant is not finite, or negative"};
  return info;
}

void write_join(const ClientInfo& info, wire::Join& join) {
  join.set_columns(info.columns);
  join.set_sample_count(info.sample_count);
  join.set_test_count(info.test_count);
  join.mutable_labels()->Assign(info.labels.begin(), info.labels.end());
  if (!info.alphabet.empty()) join.set_alphabet(info.alphabet);
  if (info.smoothness) join.set_smoothness(*info.smoothness);
  if (info.convexity) join.set_convexity(*info.convexity);
  if (info.sample_smoothness) join.set_sample_smoothness(*info.sample_smoothness);
  if (info.sample_smoothness_max) join.set_sample_smoothness_max(*info.sample_smoothness_max);
  if (info.data_hash) join.set_data_hash(*info.data_hash);
  if (info.table_hash) join.set_table_hash(*info.table_hash);
}

}  // namespace gradwire
