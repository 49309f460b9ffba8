#include "engine/nn/chain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace gradwire {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();

}  // namespace

ChainSchedule sqrt_schedule(std::size_t stages) {
  const auto segments = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(stages))));
  const auto begin = [&](std::size_t segment) { return segment * stages / segments; };
  ChainSchedule schedule;
  for (std::size_t s = 0; s < begin(segments - 1); ++s) schedule.push_back({ChainMove::kPass, s});
  for (std::size_t segment = segments; segment-- > 0;) {
    for (std::size_t s = begin(segment); s < begin(segment + 1); ++s)
      schedule.push_back({ChainMove::kKeep, s});
    for (std::size_t s = begin(segment + 1); s-- > begin(segment);) schedule.push_back({ChainMove::kBack, s});
  }
  return schedule;
}

OptimalSchedules::OptimalSchedules(std::vector<ChainStage> stages, std::size_t most)
    : stages_(std::move(stages)),
      most_(most),
      time_(stages_.size() * (stages_.size() + 1) / 2 * (most + 1), kNever) {
  for (std::size_t length = 0; length < stages_.size(); ++length)
    for (std::size_t first = 0; first + length < stages_.size(); ++first) fill(first, first + length);
}

float OptimalSchedules::if_kept(std::size_t first, std::size_t last, std::size_t memory) const {
  const ChainStage& stage = stages_[first];
  if (memory < stage.keep_peak) return kNever;
  return stage.time + (first == last ? 0 : row(first + 1, last)[memory - stage.kept]);
}

template <class Take>
void OptimalSchedules::for_passes(std::size_t first, std::size_t last, Take&& take) const {
  float time = 0;
  std::size_t peak = 0;
  for (std::size_t next = first + 1; next <= last; ++next) {
    const ChainStage& passed = stages_[next - 1];
    time += passed.time;
    peak = std::max(peak, (next - 1 > first ? passed.entry : 0) + passed.pass_peak);
    take(next, time, std::max(peak, stages_[next].entry));
  }
}

void OptimalSchedules::fill(std::size_t first, std::size_t last) {
  float* best = row(first, last);
  for (std::size_t memory = 0; memory <= most_; ++memory) best[memory] = if_kept(first, last, memory);
  // The alternative is to pass on to a later stage, store its entry, and come back when that stage has gone
  // backward.
  for_passes(first, last, [&](std::size_t next, float time, std::size_t needed) {
    const float *before = row(first, next - 1), *after = row(next, last);
    const std::size_t entry = stages_[next].entry;
    for (std::size_t memory = needed; memory <= most_; ++memory)
      best[memory] = std::min(best[memory], time + after[memory - entry] + before[memory]);
  });
}

ChainSchedule OptimalSchedules::schedule(std::size_t memory) const {
  ChainSchedule result;
  append(0, stages_.size() - 1, memory, result);
  return result;
}

void OptimalSchedules::append(std::size_t first, std::size_t last, std::size_t memory,
                              ChainSchedule& to) const {
  float best = if_kept(first, last, memory);
  std::size_t chosen = first;  // `first` means that this stage is kept
  for_passes(first, last, [&](std::size_t next, float time, std::size_t needed) {
    if (memory < needed) return;
    const float all = time + row(next, last)[memory - stages_[next].entry] + row(first, next - 1)[memory];
    if (all >= best) return;
    best = all;
    chosen = next;
  });
  if (chosen == first) {
    to.push_back({ChainMove::kKeep, first});
    if (first < last) append(first + 1, last, memory - stages_[first].kept, to);
    to.push_back({ChainMove::kBack, first});
    return;
  }
  for (std::size_t s = first; s < chosen; ++s) to.push_back({ChainMove::kPass, s});
  append(chosen, last, memory - stages_[chosen].entry, to);
  append(first, chosen - 1, memory, to);
}

}  // namespace gradwire
