#include "engine/nn/rematerialization.h"

#include <algorithm>
#include <numeric>

#include "engine/nn/backward_pass.h"

namespace gradwire {
namespace {

using Op = NetworkOp;
constexpr std::size_t kBFloat16Bytes = 2;

// More stages hardly improve the schedules, and make the search longer.
constexpr std::size_t kMostStages = 128;

class Cutter {
 public:
  Cutter(const Plan& plan, const Regions& regions, std::size_t number_bytes, bool packed)
      : plan_(plan),
        regions_(regions),
        number_bytes_(number_bytes),
        packed_(packed),
        last_(plan.steps.size() - 1),
        lives_(regions.size()),
        alive_(last_ + 1),
        inside_(last_ + 1) {
    find_lives();
    count_alive();
  }

  Stages run() {
    Stages stages;
    stages.begin = {0};
    for (const std::size_t cut : chosen()) stages.begin.push_back(cut);
    stages.begin.push_back(last_);
    for (std::size_t s = 0; s + 1 < stages.begin.size(); ++s)
      stages.chain.push_back(measure(stages.begin[s], stages.begin[s + 1]));
    return stages;
  }

 private:
  struct RegionLife {  // the life of a region, in steps
    std::size_t made = Plan::kNowhere, written = 0, read = 0;
    bool backward = false;  // the backward pass of some step reads it
  };

  void find_lives() {
    for (std::size_t i = 0; i <= last_; ++i) {
      const Op& op = plan_.steps[i].op;
      for (const std::uint32_t in : op.in)
        if (in != Op::kNone) lives_[regions_.of(in)].read = i;
      if (i == last_) break;
      RegionLife& life = lives_[regions_.of(op.out)];
      life.made = std::min(life.made, i);
      life.written = life.read = i;
      for (const std::uint32_t node : read_backward(op)) lives_[regions_.of(node)].backward = true;
    }
  }

  // Counts, before each step, the numbers that are alive and the regions that are not fully written.
  void count_alive() {
    for (std::size_t r = 0; r < lives_.size(); ++r) {
      const RegionLife& life = lives_[r];
      if (life.made == Plan::kNowhere) continue;  // kept by a step
      for (std::size_t c = life.made + 1; c <= life.read && c <= last_; ++c) {
        alive_[c] += regions_.numbers(r);
        inside_[c] += c <= life.written ? 1 : 0;
      }
    }
  }

  // Returns the cuts where the fewest numbers are alive, at most kMostStages - 1 of them. If too many cuts
  // are equal, takes some of them at regular distances.
  std::vector<std::size_t> chosen() const {
    std::vector<std::size_t> cuts;
    for (std::size_t c = 1; c < last_; ++c)
      if (inside_[c] == 0) cuts.push_back(c);
    std::stable_sort(cuts.begin(), cuts.end(),
                     [this](std::size_t a, std::size_t b) { return alive_[a] < alive_[b]; });
    const std::size_t most = kMostStages - 1;
    std::vector<std::size_t> taken;
    for (std::size_t k = 0; k < cuts.size() && taken.size() < most;) {
      std::size_t end = k;
      while (end < cuts.size() && alive_[cuts[end]] == alive_[cuts[k]]) ++end;
      const std::size_t equal = end - k, room = most - taken.size();
      if (equal > room && taken.size() >= most / 2) break;
      const std::size_t some = std::min(equal, room);
      for (std::size_t j = 0; j < some; ++j) taken.push_back(cuts[k + j * equal / some]);
      k = end;
    }
    std::sort(taken.begin(), taken.end());
    return taken;
  }

  // Bytes that are alive at each step of a stage: [begin, end], where `end` is the step after the stage.
  class Usage {
   public:
    Usage(std::size_t begin, std::size_t end) : begin_(begin), change_(end - begin + 2) {}
    // Adds bytes that are alive from step `from` to step `to`.
    void add(std::size_t from, std::size_t to, std::size_t bytes) {
      change_[from - begin_] += static_cast<std::ptrdiff_t>(bytes);
      change_[to + 1 - begin_] -= static_cast<std::ptrdiff_t>(bytes);
    }
    std::size_t peak() const {
      std::ptrdiff_t now = 0, most = 0;
      for (const std::ptrdiff_t change : change_) most = std::max(most, now += change);
      return static_cast<std::size_t>(most);
    }
    std::size_t at_end() const {
      return static_cast<std::size_t>(std::accumulate(change_.begin(), change_.end() - 1, std::ptrdiff_t{0}));
    }

   private:
    std::size_t begin_;
    std::vector<std::ptrdiff_t> change_;
  };

  ChainStage measure(std::size_t begin, std::size_t end) const {
    ChainStage stage;
    stage.entry = begin == 0 ? 0 : alive_[begin] * number_bytes_;
    Usage pass(begin, end), keep(begin, end);
    std::size_t window = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const Plan::Step& step = plan_.steps[i];
      stage.time += static_cast<float>(cost_of(plan_, step).forward);
      if (step.keep != Plan::kNowhere) {
        const std::size_t bytes = regions_.numbers(regions_.of_kept(i)) * number_bytes_;
        pass.add(i, i, bytes);
        keep.add(i, end, bytes);
      }
      std::size_t restored = 0;
      for (const std::uint32_t node : read_backward(step.op)) restored += regions_.numbers(regions_.of(node));
      window = std::max(window, restored);
      const std::size_t region = regions_.of(step.op.out);
      const RegionLife& life = lives_[region];
      if (life.made != i) continue;
      const std::size_t numbers = regions_.numbers(region), until = std::min(life.read, end);
      pass.add(i, until, numbers * number_bytes_);
      keep.add(i, life.backward && !packed_ ? end : until, numbers * number_bytes_);
      if (life.backward && packed_) keep.add(std::min(life.written, end), end, numbers * kBFloat16Bytes);
    }
    stage.pass_peak = pass.peak();
    stage.kept = keep.at_end();
    stage.keep_peak = std::max(keep.peak(), stage.kept + (packed_ ? window * number_bytes_ : 0));
    return stage;
  }

  const Plan& plan_;
  const Regions& regions_;
  const std::size_t number_bytes_;
  const bool packed_;
  const std::size_t last_;  // the loss
  std::vector<RegionLife> lives_;
  std::vector<std::size_t> alive_, inside_;  // by the step after the cut
};

}  // namespace

Regions::Regions(const Plan& plan) : plan_(plan) {
  for (const Plan::Step& step : plan.steps) {
    if (step.keep != Plan::kNowhere) first_.push_back(step.keep);
    if (plan.places[step.op.out].value != Plan::kNowhere) first_.push_back(plan.places[step.op.out].value);
  }
  std::sort(first_.begin(), first_.end());
  first_.erase(std::unique(first_.begin(), first_.end()), first_.end());
  // The planner places regions one after another.
  for (std::size_t r = 0; r < first_.size(); ++r)
    numbers_.push_back((r + 1 < first_.size() ? first_[r + 1] : plan.value_numbers) - first_[r]);
}

std::size_t Regions::at(std::size_t place) const {
  return static_cast<std::size_t>(std::lower_bound(first_.begin(), first_.end(), place) - first_.begin());
}

std::vector<std::uint32_t> read_backward(const NetworkOp& op) {
  switch (op.kind) {
    case OpKind::kAffine:
    case OpKind::kNorm:
    case OpKind::kConvolution: return {op.in[0]};
    case OpKind::kActivation: return {op.activation == Activation::kGelu ? op.in[0] : op.out};
    case OpKind::kMultiply: return {op.in[0], op.in[1]};
    case OpKind::kAttention: return {op.in[0], op.in[1], op.in[2]};
    default: return {};
  }
}

Stages cut_into_stages(const Plan& plan, const Regions& regions, std::size_t number_bytes, bool packed) {
  return Cutter(plan, regions, number_bytes, packed).run();
}

}  // namespace gradwire
