#include "engine/data/readers/synthetic.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"

namespace gradwire {
namespace {

void check(const SyntheticSpec& spec) {
  if (spec.samples == 0 || spec.dim == 0) throw DataError("synthetic: samples and dim must be at least 1");
  if (spec.dim > 0xfffffffe) throw DataError("synthetic: dim is above the limit of 2^32-2");
  if (spec.classes == 1) throw DataError("synthetic: classes = 1; use 0 for regression, or at least 2");
  if (spec.classes > spec.samples) throw DataError("synthetic: more classes than samples");
  if (spec.classes > kMaxSyntheticValues / spec.dim) {
    throw DataError("synthetic: classes * dim is above the limit of " + std::to_string(kMaxSyntheticValues));
  }
  if (!(spec.noise >= 0) || !std::isfinite(spec.noise) || (spec.classes > 0 && spec.noise > 1)) {
    throw DataError("synthetic: noise must be a probability for classes, or at least 0 for regression");
  }
}

// Returns the inner product. REQUIRES: equal lengths.
double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Returns the class that the teacher gives to the features. Shapes: features (d); teacher (classes, d), or
// (1, d) for two classes.
std::uint32_t teacher_class(std::span<const double> teacher, std::span<const double> features) {
  const std::size_t d = features.size();
  if (teacher.size() == d) return dot(teacher, features) > 0 ? 1 : 0;
  std::uint32_t best = 0;
  double best_score = dot(teacher.first(d), features);
  for (std::size_t c = 1; c < teacher.size() / d; ++c) {
    const double score = dot(teacher.subspan(c * d, d), features);
    if (score <= best_score) continue;
    best_score = score;
    best = static_cast<std::uint32_t>(c);
  }
  return best;
}

double class_label(std::uint32_t label, std::uint32_t classes) {
  if (classes == 2) return label == 1 ? 1 : -1;
  return label;
}

// The linear teacher, which gives labels to features.
class Teacher {
 public:
  explicit Teacher(const SyntheticSpec& spec)
      : spec_(spec), weights_((spec.classes > 2 ? spec.classes : 1) * spec.dim) {
    Random random(spec.seed, "synthetic teacher");
    for (double& weight : weights_) weight = random.normal();
  }
  double label(std::span<const double> features, Random& noise) const {
    if (spec_.classes == 0) {
      const double signal = dot(weights_, features) / std::sqrt(static_cast<double>(spec_.dim));
      return signal + spec_.noise * noise.normal();
    }
    std::uint32_t label = teacher_class(weights_, features);
    if (noise.uniform() < spec_.noise)
      label = static_cast<std::uint32_t>((label + 1 + noise.below(spec_.classes - 1)) % spec_.classes);
    return class_label(label, spec_.classes);
  }

 private:
  const SyntheticSpec spec_;
  std::vector<double> weights_;
};

void append_row(Dataset& data, std::span<const double> features, double label) {
  for (std::size_t c = 0; c < features.size(); ++c) {
    if (features[c] == 0) continue;
    data.column.push_back(static_cast<std::uint32_t>(c));
    data.value.push_back(features[c]);
  }
  data.row_start.push_back(data.column.size());
  data.label.push_back(label);
}

}  // namespace

bool is_too_large_to_store(const SyntheticSpec& spec) {
  return spec.dim > 0 && spec.samples > kMaxSyntheticValues / spec.dim;
}

Dataset make_synthetic(const SyntheticSpec& spec, const KeepRow& keep) {
  check(spec);
  if (is_too_large_to_store(spec))
    throw DataError("synthetic: samples * dim is above the limit of " + std::to_string(kMaxSyntheticValues) +
                    " for stored rows");
  const Teacher teacher(spec);
  Random feature_random(spec.seed, "synthetic features");
  Random noise_random(spec.seed, "synthetic noise");
  Dataset data;
  data.columns = spec.dim;
  if (!keep) {
    data.column.reserve(spec.samples * spec.dim);
    data.value.reserve(spec.samples * spec.dim);
  }
  data.row_start.reserve(spec.samples + 1);
  data.label.reserve(spec.samples);
  constexpr std::size_t kDrawnAtOnce = 1024;
  const std::size_t rows_at_once = std::clamp<std::size_t>(kDrawnAtOnce / spec.dim, 1, spec.samples);
  std::vector<double> drawn(rows_at_once * spec.dim);
  for (std::size_t r = 0; r < spec.samples; ++r) {
    const std::size_t place = r % rows_at_once;
    if (place == 0)
      feature_random.normals(std::span(drawn).first(std::min(rows_at_once, spec.samples - r) * spec.dim));
    const auto features = std::span<const double>(drawn).subspan(place * spec.dim, spec.dim);
    const double label = teacher.label(features, noise_random);
    append_row(data, !keep || keep(r) ? features : features.first(0), label);
  }
  return data;
}

SharedSamples draw_synthetic(const SyntheticSpec& spec, const SplitSpec& split) {
  check(spec);
  const std::string large = "synthetic with samples * dim above " + std::to_string(kMaxSyntheticValues) +
                            " is drawn client by client: ";
  if (split.partition != PartitionKind::kContiguous && split.partition != PartitionKind::kIid)
    throw DataError(large + "clients.partition must be \"contiguous\" or \"iid\"");
  if (split.replication.count > 1) throw DataError(large + "clients.replication must be 1");
  if (split.test_share > 0) throw DataError(large + "problem.test_share must be 0");
  if (split.samples_per_client > spec.samples ||
      (split.samples_per_client == 0 && split.clients > spec.samples))
    throw DataError("more clients than samples: " + std::to_string(split.clients) + " clients, " +
                    std::to_string(spec.samples) + " training samples");
  SharedSamples shared;
  shared.train.columns = spec.dim;
  shared.train_shares = split.samples_per_client > 0
                            ? Shares::drawn(split.clients, spec.samples, split.samples_per_client, split.seed)
                            : Shares::equal(split.clients, spec.samples);
  shared.test_shares = Shares::equal(split.clients, 0);
  for (std::uint32_t k = 0; k < spec.classes; ++k) shared.made.labels.push_back(class_label(k, spec.classes));
  shared.made.part = [spec, shares = shared.train_shares,
                      teacher = std::make_shared<const Teacher>(spec)](std::uint32_t client) {
    ClientDataset part;
    part.train.columns = part.test.columns = spec.dim;
    std::vector<std::uint32_t> work;
    std::vector<double> features(spec.dim);
    const ClientRows rows = shares.rows(client, work);
    for (std::size_t j = 0; j < rows.count; ++j) {
      Random random(spec.seed + rows[j] * 0x9E3779B97F4A7C15u, "synthetic row");
      random.normals(features);
      append_row(part.train, features, teacher->label(features, random));
    }
    return part;
  };
  return shared;
}

}  // namespace gradwire
