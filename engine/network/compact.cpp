// Plans of networks that keep their activations in bfloat16. A value lives in its own type from the first
// operation that writes it to the last that reads it on the way forward; then its place is reused. What
// backward reads again is kept in 16 bits from when it is done, and comes back into a window when its turn
// comes. Forward knows nothing of it: losses have the same bits. Data are read again instead.
#include <algorithm>
#include <limits>
#include <vector>

#include "engine/network/plan.h"

namespace gradwire {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

// A range of the plan's values: those of one node, of nodes that overwrite each other, or a step's own.
struct Region {
  std::size_t old = 0, numbers = 0;
  std::size_t from = kNever, written = 0, to = 0;  // steps
  bool own = false;                                // of a step, which keeps them until its backward
  std::size_t at = 0, kept = Plan::kNowhere;
};

// The nodes whose values backward reads.
std::vector<std::uint32_t> read_backward(const Network::Op& op) {
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

class Compactor {
 public:
  explicit Compactor(Plan& plan) : plan_(plan), maker_(plan.places.size()) {}

  void run() {
    find_regions();
    find_lives();
    plan_restores();
    place();
  }

 private:
  Region& region_at(std::size_t old) {
    return *std::lower_bound(regions_.begin(), regions_.end(), old,
                             [](const Region& r, std::size_t at) { return r.old < at; });
  }
  Region& region_of(std::uint32_t node) { return region_at(plan_.places[node].value); }

  // The planner takes them one behind the other.
  void find_regions() {
    for (const Plan::Step& step : plan_.steps) {
      if (step.keep != Plan::kNowhere) regions_.push_back({.old = step.keep, .own = true});
      if (plan_.places[step.op.out].value != Plan::kNowhere)
        regions_.push_back({.old = plan_.places[step.op.out].value});
    }
    std::sort(regions_.begin(), regions_.end(),
              [](const Region& a, const Region& b) { return a.old < b.old; });
    regions_.erase(std::unique(regions_.begin(), regions_.end(),
                               [](const Region& a, const Region& b) { return a.old == b.old; }),
                   regions_.end());
    for (std::size_t r = 0; r < regions_.size(); ++r)
      regions_[r].numbers =
          (r + 1 < regions_.size() ? regions_[r + 1].old : plan_.value_numbers) - regions_[r].old;
  }

  void find_lives() {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const Network::Op& op = plan_.steps[i].op;
      maker_[op.out] = i;
      for (const std::uint32_t in : op.in)
        if (in != Network::Op::kNone) region_of(in).to = i;
      if (plan_.places[op.out].value == Plan::kNowhere) continue;
      Region& made = region_of(op.out);
      made.from = std::min(made.from, i);
      made.written = made.to = i;
    }
  }

  void plan_restores() {
    plan_.kept.resize(plan_.steps.size());
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      Plan::Step& step = plan_.steps[i];
      std::size_t window = 0;
      for (const std::uint32_t node : read_backward(step.op)) {
        Region& region = region_of(node);
        const Plan::Step& maker = plan_.steps[maker_[node]];
        const bool data = maker.op.kind == OpKind::kFeatures;
        if (!data && region.kept == Plan::kNowhere) {
          region.kept = plan_.kept_numbers;
          plan_.kept_numbers += region.numbers;
          plan_.steps[region.written].packs = true;
          plan_.kept[region.written].pack.push_back(plan_.steps[region.written].op.out);
        }
        step.restores = true;
        plan_.kept[i].restore.push_back({node, window, data ? maker_[node] : Plan::kNowhere});
        window += region.numbers;
      }
      window_ = std::max(window_, window);
    }
  }

  // First fit, in the order of the steps, behind what steps keep for themselves. The window lies over it all:
  // backward needs nothing else of it.
  void place() {
    std::size_t own = 0;
    std::vector<Region*> lives;
    for (Region& region : regions_) {
      if (region.own) {
        region.at = own;
        own += region.numbers;
      } else {
        lives.push_back(&region);
      }
    }
    std::stable_sort(lives.begin(), lives.end(),
                     [](const Region* a, const Region* b) { return a->from < b->from; });
    std::vector<const Region*> taken;  // by place, ascending
    std::size_t most = window_;
    for (Region* region : lives) {
      std::erase_if(taken, [&](const Region* t) { return t->to < region->from; });
      std::size_t first = 0;
      auto before = taken.begin();
      while (before != taken.end() && first + region->numbers > (*before)->at - own) {
        first = (*before)->at - own + (*before)->numbers;
        ++before;
      }
      region->at = own + first;
      taken.insert(before, region);
      most = std::max(most, first + region->numbers);
    }
    for (Plan::Step& step : plan_.steps) {
      if (step.keep != Plan::kNowhere) step.keep = region_at(step.keep).at;
    }
    for (Plan::Kept& kept : plan_.kept)
      for (Plan::Restore& restore : kept.restore) restore.at += own;
    for (Plan::Place& each : plan_.places) {
      if (each.value == Plan::kNowhere) continue;
      const Region& region = region_at(each.value);
      each.kept = region.kept;
      each.value = region.at;
    }
    plan_.value_numbers = own + most;
  }

  Plan& plan_;
  std::vector<std::size_t> maker_;  // step, by node
  std::vector<Region> regions_;     // by `old`, ascending
  std::size_t window_ = 0;
};

}  // namespace

void keep_bfloat16(Plan& plan) { Compactor(plan).run(); }

}  // namespace gradwire
