#include "engine/data/synthetic.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"

namespace gradwire {
namespace {

void check(const SyntheticSpec& spec) {
  if (spec.samples == 0 || spec.dim == 0) throw DataError("synthetic: samples and dim must be at least 1");
  if (spec.dim > 0xfffffffe || spec.samples > kMaxSyntheticValues / spec.dim) {
    throw DataError("synthetic: samples * dim is above the limit of " + std::to_string(kMaxSyntheticValues));
  }
  if (spec.classes == 1) throw DataError("synthetic: classes = 1; use 0 for regression, or at least 2");
  if (spec.classes > spec.samples) throw DataError("synthetic: more classes than samples");
  if (spec.classes > kMaxSyntheticValues / spec.dim) {
    throw DataError("synthetic: classes * dim is above the limit of " + std::to_string(kMaxSyntheticValues));
  }
  if (!(spec.noise >= 0) || !std::isfinite(spec.noise) || (spec.classes > 0 && spec.noise > 1)) {
    throw DataError("synthetic: noise must be a probability for classes, or at least 0 for regression");
  }
}

// REQUIRES: equal lengths.
double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The class that the teacher, shape (classes, d) or (1, d) for two classes, gives to the features, shape (d).
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

}  // namespace

Dataset make_synthetic(const SyntheticSpec& spec) {
  check(spec);
  Random teacher_random(spec.seed, "synthetic teacher");
  std::vector<double> teacher((spec.classes > 2 ? spec.classes : 1) * spec.dim);
  for (double& weight : teacher) weight = teacher_random.normal();

  Random feature_random(spec.seed, "synthetic features");
  Random noise_random(spec.seed, "synthetic noise");
  Dataset data;
  data.columns = spec.dim;
  data.column.reserve(spec.samples * spec.dim);
  data.value.reserve(spec.samples * spec.dim);
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
    for (std::size_t c = 0; c < spec.dim; ++c) {
      if (features[c] == 0) continue;
      data.column.push_back(static_cast<std::uint32_t>(c));
      data.value.push_back(features[c]);
    }
    data.row_start.push_back(data.column.size());
    if (spec.classes == 0) {
      const double signal = dot(teacher, features) / std::sqrt(static_cast<double>(spec.dim));
      data.label.push_back(signal + spec.noise * noise_random.normal());
      continue;
    }
    std::uint32_t label = teacher_class(teacher, features);
    if (noise_random.uniform() < spec.noise) {
      label = static_cast<std::uint32_t>((label + 1 + noise_random.below(spec.classes - 1)) % spec.classes);
    }
    data.label.push_back(class_label(label, spec.classes));
  }
  return data;
}

}  // namespace gradwire
