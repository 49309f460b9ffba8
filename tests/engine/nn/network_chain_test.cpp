// Schedules of chains of stages. Each one runs on a model of the memory. The optimal schedules are
// as fast as the fastest sequence of moves.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "engine/nn/chain.h"

namespace gradwire {
namespace {

std::vector<ChainStage> random_chain(std::size_t stages, std::uint64_t seed) {
  Random random(seed, "chain");
  std::vector<std::size_t> entry = {0};
  for (std::size_t s = 0; s < stages; ++s) entry.push_back(1 + random.below(3));
  std::vector<ChainStage> chain;
  for (std::size_t s = 0; s < stages; ++s) {
    ChainStage stage;
    stage.time = static_cast<float>(1 + random.below(5));
    stage.entry = entry[s];
    stage.kept = entry[s + 1] + random.below(4);
    stage.pass_peak = entry[s + 1] + random.below(3);
    stage.keep_peak = std::max(stage.kept, stage.pass_peak) + random.below(2);
    chain.push_back(stage);
  }
  return chain;
}

// The memory while a chain runs. A result stays stored until its stage has gone backward. A result that was
// passed on and not stored is in flight.
struct ChainState {
  std::uint32_t stored = 0, kept = 0;  // bit s: stage s's entry is stored; its data for backward are kept
  std::size_t flight = 0;              // the stage whose entry is in flight; 0 if no entry is
  std::size_t back = 0;                // number of stages that have not gone backward
  auto operator<=>(const ChainState&) const = default;
};

class ChainMachine {
 public:
  ChainMachine(const std::vector<ChainStage>& chain, std::size_t memory) : chain_(chain), memory_(memory) {}

  static bool has(std::uint32_t set, std::size_t stage) { return (set >> stage & 1) != 0; }
  std::size_t used(const ChainState& at) const {
    std::size_t sum = 0;
    for (std::size_t s = 0; s < chain_.size(); ++s)
      sum += (has(at.stored, s) ? chain_[s].entry : 0) + (has(at.kept, s) ? chain_[s].kept : 0);
    return sum;
  }
  bool ready(const ChainState& at, std::size_t s) const {
    return s == 0 || has(at.stored, s) || has(at.kept, s - 1);
  }
  // Each of these functions returns false and changes nothing if the move is not allowed or does not fit.
  bool pass(ChainState& at, std::size_t s) const {
    const bool flies = at.flight == s && s > 0 && !ready(at, s);
    if (s + 1 >= at.back || (!ready(at, s) && !flies)) return false;
    if (used(at) + (flies ? chain_[s].entry : 0) + chain_[s].pass_peak > memory_) return false;
    at.flight = s + 1;
    return true;
  }
  bool store(ChainState& at) const {
    if (at.flight == 0 || used(at) + chain_[at.flight].entry > memory_) return false;
    at.stored |= 1u << at.flight;
    at.flight = 0;
    return true;
  }
  bool keep(ChainState& at, std::size_t s) const {
    if (s >= at.back || has(at.kept, s) || !ready(at, s)) return false;
    if (used(at) + chain_[s].keep_peak > memory_) return false;
    at.kept |= 1u << s;
    at.flight = 0;
    return true;
  }
  bool back(ChainState& at) const {
    const std::size_t s = at.back - 1;
    if (!has(at.kept, s) || !ready(at, s)) return false;
    if (used(at) - chain_[s].kept + chain_[s].keep_peak > memory_) return false;
    at.kept &= ~(1u << s);
    at.stored &= ~(1u << s);
    at.flight = 0;
    --at.back;
    return true;
  }

 private:
  const std::vector<ChainStage>& chain_;
  std::size_t memory_;
};

// Returns the least time of all sequences of moves, by Dijkstra's algorithm.
float cheapest(const std::vector<ChainStage>& chain, std::size_t memory) {
  const ChainMachine machine(chain, memory);
  using Entry = std::pair<float, ChainState>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::set<ChainState> done;
  open.push({0, ChainState{.back = chain.size()}});
  while (!open.empty()) {
    const auto [time, at] = open.top();
    open.pop();
    if (at.back == 0) return time;
    if (!done.insert(at).second) continue;
    ChainState next = at;
    if (machine.back(next)) open.push({time, next});
    next = at;
    if (machine.store(next)) open.push({time, next});
    for (std::size_t s = 0; s < chain.size(); ++s) {
      next = at;
      if (machine.pass(next, s)) open.push({time + chain[s].time, next});
      next = at;
      if (machine.keep(next, s)) open.push({time + chain[s].time, next});
    }
  }
  return std::numeric_limits<float>::infinity();
}

// Returns whether stage `s` starts from its entry again after action k, before the entry is made again.
bool starts_again(const ChainSchedule& schedule, std::size_t k, std::size_t s) {
  for (++k; k < schedule.size(); ++k) {
    if (schedule[k].move == ChainMove::kBack) continue;
    if (schedule[k].stage == s) return true;
    if (schedule[k].stage + 1 == s) return false;
  }
  return false;
}

// Runs a schedule and returns its time. Stores a result in flight unless only the next pass needs it.
float time_of(const ChainSchedule& schedule, const std::vector<ChainStage>& chain, std::size_t memory) {
  const ChainMachine machine(chain, memory);
  ChainState at{.back = chain.size()};
  float time = 0;
  for (std::size_t k = 0; k < schedule.size(); ++k) {
    const auto [move, stage] = schedule[k];
    const bool passes = move == ChainMove::kPass && stage == at.flight && !starts_again(schedule, k, stage);
    if (at.flight > 0 && !passes && !machine.ready(at, at.flight)) {
      EXPECT_TRUE(machine.store(at));
    }
    switch (move) {
      case ChainMove::kPass: EXPECT_TRUE(machine.pass(at, stage)); break;
      case ChainMove::kKeep: EXPECT_TRUE(machine.keep(at, stage)); break;
      case ChainMove::kBack:
        EXPECT_EQ(stage + 1, at.back);
        EXPECT_TRUE(machine.back(at));
        break;
    }
    if (move != ChainMove::kBack) time += chain[stage].time;
  }
  EXPECT_EQ(at.back, 0u);
  return time;
}

TEST(OptimalSchedules, MatchCheapestSequenceOfMoves) {
  constexpr std::size_t kMost = 24;
  std::size_t feasible = 0, repeating = 0;
  for (std::size_t stages = 1; stages <= 5; ++stages)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<ChainStage> chain = random_chain(stages, seed);
      const OptimalSchedules optimal(chain, kMost);
      float once = 0;
      for (const ChainStage& stage : chain) once += stage.time;
      for (std::size_t memory = 0; memory <= kMost; ++memory) {
        SCOPED_TRACE(std::to_string(stages) + " stages, seed " + std::to_string(seed) + ", memory " +
                     std::to_string(memory));
        ASSERT_EQ(optimal.time(memory), cheapest(chain, memory));
        if (std::isinf(optimal.time(memory))) continue;
        ++feasible;
        repeating += optimal.time(memory) > once;
        ASSERT_EQ(time_of(optimal.schedule(memory), chain, memory), optimal.time(memory));
      }
    }
  EXPECT_GT(feasible, 1000u);
  EXPECT_GT(repeating, 200u);
}

TEST(OptimalSchedules, RunLongChainInLittleMemoryAndModerateTime) {
  const std::vector<ChainStage> chain(100,
                                      {.time = 1, .entry = 1, .kept = 10, .pass_peak = 3, .keep_peak = 11});
  const OptimalSchedules optimal(chain, 1001);
  EXPECT_EQ(optimal.time(1001), 100);
  EXPECT_GT(optimal.time(1000), 100);
  EXPECT_LE(optimal.time(200), 200);  // at most one more forward pass
  EXPECT_LT(optimal.time(60), 300);
}

TEST(SqrtSchedule, ComputesAllSegmentsExceptLastTwice) {
  const std::vector<ChainStage> chain(10, {.time = 1, .entry = 1, .kept = 5, .pass_peak = 1, .keep_peak = 5});
  const ChainSchedule schedule = sqrt_schedule(10);  // segments of 2, 3, 2 and 3
  EXPECT_EQ(time_of(schedule, chain, 3 + 15), 10 + 7);
  EXPECT_EQ(schedule[6], (ChainAction{ChainMove::kPass, 6}));
  EXPECT_EQ(schedule[7], (ChainAction{ChainMove::kKeep, 7}));
  EXPECT_EQ(sqrt_schedule(1), (ChainSchedule{{ChainMove::kKeep, 0}, {ChainMove::kBack, 0}}));
}

}  // namespace
}  // namespace gradwire
