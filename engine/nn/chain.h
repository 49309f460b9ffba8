// Schedules that run a chain of stages forward and backward in little memory. Some stages keep what their
// backward pass needs. The others only pass on their result, and run again when the backward pass reaches
// them.
//
// sqrt_schedule() is the schedule of Chen et al. (arXiv:1604.06174). OptimalSchedules is the dynamic
// programming of Beaumont et al. (arXiv:1911.13214) for stages of different sizes and times. It considers all
// schedules in which a stored entry of a stage stays until that stage has gone backward. It picks one that
// recomputes least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradwire {

// One stage of a chain. All memory sizes have the same unit, which may be any number of bytes. The entry of a
// stage is what it reads: the result of the stage before.
struct ChainStage {
  float time = 0;             // time of its forward pass
  std::size_t entry = 0;      // memory of its entry
  std::size_t kept = 0;       // memory that its backward pass needs in addition to the entry; includes its
                              // result
  std::size_t pass_peak = 0;  // peak memory in addition to the entry, while it runs and keeps only its result
  std::size_t keep_peak = 0;  // the same while it keeps everything, and while it goes backward; >= kept
};

// kPass and kKeep run a stage forward. kPass keeps only its result; kKeep keeps all that its backward pass
// needs.
enum class ChainMove : std::uint8_t { kPass, kKeep, kBack };
struct ChainAction {
  ChainMove move;
  std::size_t stage;
  bool operator==(const ChainAction&) const = default;
};
// The actions of a whole forward and backward pass. The first kBack is that of the last stage, right after
// the kKeep of that stage. The last action is kBack of stage 0.
using ChainSchedule = std::vector<ChainAction>;

// Returns a schedule with about sqrt(stages) segments of equal length. All segments except the last run
// twice.
ChainSchedule sqrt_schedule(std::size_t stages);

// The optimal schedules for every memory size from 0 to `most`. The constructor takes about stages^3 most / 6
// additions.
class OptimalSchedules {
 public:
  OptimalSchedules(std::vector<ChainStage> stages, std::size_t most);

  // Returns the time of all forward passes, repeated ones included; infinity if the memory is too small.
  float time(std::size_t memory) const { return row(0, stages_.size() - 1)[memory]; }
  std::size_t most() const { return most_; }
  // Returns a schedule of least time. REQUIRES: time(memory) is finite.
  ChainSchedule schedule(std::size_t memory) const;

 private:
  // Returns an array that has, for each memory size, the least forward time in which stages first .. last can
  // run forward and backward. The memory does not include the entry of stage `first`.
  const float* row(std::size_t first, std::size_t last) const {
    return &time_[(last * (last + 1) / 2 + first) * (most_ + 1)];
  }
  float* row(std::size_t first, std::size_t last) {
    return &time_[(last * (last + 1) / 2 + first) * (most_ + 1)];
  }
  float if_kept(std::size_t first, std::size_t last, std::size_t memory) const;
  void fill(std::size_t first, std::size_t last);
  void append(std::size_t first, std::size_t last, std::size_t memory, ChainSchedule& to) const;
  // Calls take(next, time, needed) for each stage after `first` that kPass actions can reach. These actions
  // take the time `time`, and at least the memory `needed`.
  template <class Take>
  void for_passes(std::size_t first, std::size_t last, Take&& take) const;

  std::vector<ChainStage> stages_;
  std::size_t most_;
  std::vector<float> time_;
};

}  // namespace gradwire
