// Schedules of a chain of stages that fits into little memory: which stages keep what their backward pass
// needs, and which only pass their result on and are computed again when backward comes to them.
//
// sqrt_schedule() is that of Chen et al. (arXiv:1604.06174). OptimalSchedules is the dynamic programming of
// Beaumont et al. (arXiv:1911.13214) for stages of different sizes and times: of all schedules in which a
// stored result stays until its stage has gone backward, the one that computes least again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradwire {

// Memory is in any unit. What a stage reads is the result of the stage before, its entry.
struct ChainStage {
  float time = 0;             // of forward
  std::size_t entry = 0;      // memory of what it reads
  std::size_t kept = 0;       // what its backward needs beside the entry; the stage's result included
  std::size_t pass_peak = 0;  // most beside the entry while it runs and keeps only its result
  std::size_t keep_peak = 0;  // the same while it runs and keeps all, and while it goes backward; >= kept
};

enum class ChainMove : std::uint8_t { kPass, kKeep, kBack };
struct ChainAction {
  ChainMove move;
  std::size_t stage;
  bool operator==(const ChainAction&) const = default;
};
// Ends with kBack of stage 0; the first kBack is that of the last stage, whose kKeep stands right before it.
using ChainSchedule = std::vector<ChainAction>;

// Segments of about sqrt(stages) stages; each but the last is computed twice.
ChainSchedule sqrt_schedule(std::size_t stages);

// For every memory from 0 to `most` at once, in stages^3 most / 6 additions.
class OptimalSchedules {
 public:
  OptimalSchedules(std::vector<ChainStage> stages, std::size_t most);

  // Of all forward passes, repeated ones included; infinite where there is too little memory.
  float time(std::size_t memory) const { return row(0, stages_.size() - 1)[memory]; }
  std::size_t most() const { return most_; }
  // REQUIRES: time(memory) is finite.
  ChainSchedule schedule(std::size_t memory) const;

 private:
  // Least forward time of stages first .. last, backward included, by the memory beside the entry of the
  // first.
  const float* row(std::size_t first, std::size_t last) const {
    return &time_[(last * (last + 1) / 2 + first) * (most_ + 1)];
  }
  float* row(std::size_t first, std::size_t last) {
    return &time_[(last * (last + 1) / 2 + first) * (most_ + 1)];
  }
  float if_kept(std::size_t first, std::size_t last, std::size_t memory) const;
  void fill(std::size_t first, std::size_t last);
  void append(std::size_t first, std::size_t last, std::size_t memory, ChainSchedule& to) const;
  // Calls take(next, time, needed) for each later stage that may be reached by passing on: the time until
  // there, and the least memory for it.
  template <class Take>
  void for_passes(std::size_t first, std::size_t last, Take&& take) const;

  std::vector<ChainStage> stages_;
  std::size_t most_;
  std::vector<float> time_;
};

}  // namespace gradwire
