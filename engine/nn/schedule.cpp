#include "engine/nn/schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/nn/chain.h"
#include "engine/nn/rematerialization.h"

namespace gradwire {
namespace {

struct Actions {
  std::vector<Plan::Action> list;
  std::size_t forward = 0, pass = 0;  // as in Plan
};

class Scheduler {
  using Action = Plan::Action;
  using Kind = Plan::Action::Kind;
  static constexpr std::size_t kNowhere = Plan::kNowhere;
  static constexpr std::uint32_t kNone = NetworkOp::kNone;

 public:
  Scheduler(Plan& plan, const ScheduleOptions& options)
      : plan_(plan),
        options_(options),
        packed_(options.kept == KeptActivations::kBFloat16),
        regions_(plan),
        maker_(plan.places.size()) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) maker_[plan.steps[i].op.out] = i;
  }

  void run() {
    if (options_.budget.is_none()) {
      const std::vector<std::size_t> whole = {0, plan_.steps.size() - 1};
      return adopt(place(unroll({{ChainMove::kKeep, 0}, {ChainMove::kBack, 0}}, whole)));
    }
    const Stages stages = cut_into_stages(plan_, regions_, options_.number_bytes, packed_);
    if (options_.budget.is_sqrt())
      return adopt(place(unroll(sqrt_schedule(stages.chain.size()), stages.begin)));
    adopt(fit(stages));
  }

 private:
  struct Placed {
    Actions actions;
    std::size_t value_numbers = 0, kept_numbers = 0;
  };

  // Returns the schedule that recomputes least of those that fit.
  Placed fit(const Stages& stages) const {
    constexpr std::size_t kUnits = 768;
    std::size_t all = 0;  // bytes that no schedule exceeds
    for (const ChainStage& stage : stages.chain) all += stage.entry + stage.keep_peak;
    const std::size_t unit = all / kUnits + 1;
    std::vector<ChainStage> chain = stages.chain;
    for (ChainStage& stage : chain)
      for (std::size_t* bytes : {&stage.entry, &stage.kept, &stage.pass_peak, &stage.keep_peak})
        *bytes = (*bytes + unit - 1) / unit;
    const OptimalSchedules schedules(chain, kUnits + 2 * chain.size() + 4);  // rounding adds some
    const std::uint64_t budget = options_.budget.bytes();
    // If the budget is too small, the search continues with the memory of the smallest schedule as its aim.
    // So the reported least budget does work.
    for (std::uint64_t aim = budget;;) {
      auto [placed, bytes] = first_within(aim, unit, schedules, stages.begin);
      if (bytes <= budget) return std::move(placed);
      if (bytes == aim) throw BudgetTooSmall(budget, bytes);
      aim = bytes;
    }
  }

  // Tries the schedules that need about `bytes` and less, the fastest first. Returns the first that fits the
  // budget, or the smallest one if none fits. The memory of a schedule is known only after its values have
  // places. The chain's own count only orders the schedules: it is rounded up, and counts a value that lives
  // across several stages in each of them.
  std::pair<Placed, std::uint64_t> first_within(std::uint64_t bytes, std::size_t unit,
                                                const OptimalSchedules& schedules,
                                                const std::vector<std::size_t>& begin) const {
    std::pair<Placed, std::uint64_t> smallest{{}, ~std::uint64_t{0}};
    const std::uint64_t units = bytes / unit;
    std::size_t memory =
        static_cast<std::size_t>(std::min<std::uint64_t>(units + units / 2 + 2, schedules.most()));
    while (std::isinf(schedules.time(memory)) && memory < schedules.most()) ++memory;
    for (;; --memory) {
      while (memory > 0 && schedules.time(memory - 1) == schedules.time(memory)) --memory;
      Placed placed = place(unroll(schedules.schedule(memory), begin));
      const std::uint64_t taken = arena_bytes_with(placed);
      if (taken < smallest.second) smallest = {std::move(placed), taken};
      if (taken <= options_.budget.bytes() || memory == 0 || std::isinf(schedules.time(memory - 1)))
        return smallest;
    }
  }

  std::size_t arena_bytes_with(const Placed& placed) const {
    Plan plan;
    plan.value_numbers = placed.value_numbers, plan.kept_numbers = placed.kept_numbers;
    plan.gradient_numbers = plan_.gradient_numbers, plan.scratch_numbers = plan_.scratch_numbers;
    plan.turned_numbers = plan_.turned_numbers, plan.dense_numbers = plan_.dense_numbers;
    return arena_bytes(plan, options_.number_bytes);
  }

  void adopt(Placed placed) {
    plan_.actions = std::move(placed.actions.list);
    plan_.forward_actions = placed.actions.forward;
    plan_.backward_actions = placed.actions.pass;
    plan_.value_numbers = placed.value_numbers;
    plan_.kept_numbers = placed.kept_numbers;
  }

  bool is_data(std::uint32_t node) const { return plan_.steps[maker_[node]].op.kind == OpKind::kFeatures; }

  // Returns whether the value goes to bfloat16 and is unpacked later.
  bool comes_back(std::uint32_t node) const { return packed_ && !is_data(node); }

  // ---- which steps run, in which order ----

  // Lists the steps in order, with the packing and unpacking of values. Leaves out steps whose result is not
  // read. Data are not packed; they are read again.
  Actions unroll(const ChainSchedule& schedule, const std::vector<std::size_t>& begin) const {
    std::vector<Action> steps;
    std::size_t forward = kNowhere;
    for (const ChainAction& each : schedule) {
      const std::size_t first = begin[each.stage], end = begin[each.stage + 1];
      if (each.move == ChainMove::kBack) {
        if (forward == kNowhere) forward = steps.size();
        for (std::size_t i = end; i-- > first;) steps.push_back(action(Kind::kBackward, i));
      } else {
        for (std::size_t i = first; i < end; ++i) steps.push_back(action(Kind::kForward, i));
      }
    }
    const std::size_t pass = steps.size();
    if (options_.up_again)
      for (std::size_t i = 0; i + 1 < plan_.steps.size(); ++i)
        if (plan_.steps[i].op.count[0] > 0) steps.push_back(action(Kind::kBackward, i));
    return needed_of(steps, forward, pass);
  }

  static Action action(Kind kind, std::size_t number) {
    return {.kind = kind, .number = static_cast<std::uint32_t>(number)};
  }

  Actions needed_of(const std::vector<Action>& steps, std::size_t forward, std::size_t pass) const {
    std::vector<bool> wanted(plan_.places.size()), wanted_packed(plan_.places.size()),
        wanted_kept(plan_.steps.size());
    std::vector<Action> backwards;  // from the last to the first
    Actions actions;
    std::size_t after_pass = 0, after_forward = 0;
    for (std::size_t k = steps.size(); k-- > 0;) {
      if (k + 1 == pass) after_pass = backwards.size();
      if (k + 1 == forward) {
        after_forward = backwards.size();
        for (const std::uint32_t in : plan_.steps.back().op.in)
          if (in != kNone) wanted[in] = true;
      }
      const std::size_t i = steps[k].number;
      const NetworkOp& op = plan_.steps[i].op;
      if (steps[k].kind == Kind::kBackward) {
        if (!options_.budget.is_none())  // otherwise no step runs again
          for (const std::uint32_t node : read_backward(op))
            if (comes_back(node)) backwards.push_back(action(Kind::kReturn, node));
        backwards.push_back(steps[k]);
        wanted_kept[i] = plan_.steps[i].keep != kNowhere;
        for (const std::uint32_t node : read_backward(op)) {
          if (comes_back(node)) {
            backwards.push_back(action(Kind::kUnpack, node));
            wanted_packed[node] = true;
          } else if (packed_) {
            backwards.push_back(action(Kind::kForward, maker_[node]));
          } else {
            wanted[node] = true;
          }
        }
        continue;
      }
      if (!wanted[op.out] && !wanted_packed[op.out] && !wanted_kept[i]) continue;
      if (wanted_packed[op.out]) backwards.push_back(action(Kind::kPack, op.out));
      backwards.push_back(steps[k]);
      wanted[op.out] = wanted_packed[op.out] = wanted_kept[i] = false;
      for (const std::uint32_t in : op.in)
        if (in != kNone) wanted[in] = true;
    }
    actions.list.assign(backwards.rbegin(), backwards.rend());
    actions.forward = backwards.size() - after_forward;
    actions.pass = backwards.size() - after_pass;
    return actions;
  }

  // ---- places of values over time ----

  struct Stay {  // a value at one place, from one action to another, inclusive
    std::size_t from, to, numbers;
    bool packed;
    std::size_t at = 0;
  };

  Placed place(Actions actions) const {
    std::vector<Stay> stays;
    std::vector<std::size_t> value_of(actions.list.size(), kNowhere), kept_of(value_of);  // stay by action
    find_stays(actions, stays, value_of, kept_of);
    Placed placed;
    placed.value_numbers = pack(stays, false);
    placed.kept_numbers = pack(stays, true);
    for (std::size_t t = 0; t < actions.list.size(); ++t) {
      if (value_of[t] != kNowhere) actions.list[t].value = stays[value_of[t]].at;
      if (kept_of[t] != kNowhere) actions.list[t].kept = stays[kept_of[t]].at;
    }
    placed.actions = std::move(actions);
    return placed;
  }

  void find_stays(const Actions& actions, std::vector<Stay>& stays, std::vector<std::size_t>& value_of,
                  std::vector<std::size_t>& kept_of) const {
    std::vector<std::size_t> value(plan_.places.size(), kNowhere), packed(value), restored(value),
        kept(plan_.steps.size(), kNowhere);
    const auto begin = [&](std::size_t t, std::size_t region, bool in_16_bits) {
      stays.push_back({t, t, regions_.numbers(region), in_16_bits});
      return stays.size() - 1;
    };
    for (std::size_t t = 0; t < actions.list.size(); ++t) {
      const Action& each = actions.list[t];
      const std::uint32_t number = each.number;
      const auto read = [&](std::size_t stay) { stays[stay].to = t; };
      switch (each.kind) {
        case Kind::kForward: {
          const Plan::Step& step = plan_.steps[number];
          std::size_t& out = value[step.op.out];
          out = kNowhere;
          for (const std::uint32_t in : step.op.in) {
            if (in == kNone) continue;
            read(value[in]);
            if (plan_.places[in].value == plan_.places[step.op.out].value) out = value[in];  // in place
          }
          if (out == kNowhere) out = begin(t, regions_.of(step.op.out), false);
          value_of[t] = out;
          if (step.keep != kNowhere) kept_of[t] = kept[number] = begin(t, regions_.of_kept(number), false);
          break;
        }
        case Kind::kBackward:
          for (const std::uint32_t node : read_backward(plan_.steps[number].op))
            read(comes_back(node) ? restored[node] : value[node]);
          if (kept[number] != kNowhere) read(kept[number]);
          break;
        case Kind::kPack:
          read(value[number]);
          kept_of[t] = packed[number] = begin(t, regions_.of(number), true);
          break;
        case Kind::kUnpack:
          read(packed[number]);
          kept_of[t] = packed[number];
          value_of[t] = restored[number] = begin(t, regions_.of(number), false);
          break;
        case Kind::kReturn: value_of[t] = value[number]; break;
      }
    }
  }

  // Places each stay as low as possible, the longest stays first. So stored results end up at the bottom, one
  // above another. Returns the size of all places.
  static std::size_t pack(std::vector<Stay>& stays, bool packed) {
    std::vector<Stay*> longest;
    for (Stay& stay : stays)
      if (stay.packed == packed) longest.push_back(&stay);
    std::stable_sort(longest.begin(), longest.end(),
                     [](const Stay* a, const Stay* b) { return a->to - a->from > b->to - b->from; });
    std::vector<const Stay*> placed;  // by place
    std::size_t most = 0;
    for (Stay* stay : longest) {
      for (const Stay* other : placed) {
        if (other->to < stay->from || stay->to < other->from) continue;
        if (stay->at + stay->numbers <= other->at) break;
        stay->at = std::max(stay->at, other->at + other->numbers);
      }
      placed.insert(std::upper_bound(placed.begin(), placed.end(), stay,
                                     [](const Stay* a, const Stay* b) { return a->at < b->at; }),
                    stay);
      most = std::max(most, stay->at + stay->numbers);
    }
    return most;
  }

  Plan& plan_;
  const ScheduleOptions options_;
  const bool packed_;
  const Regions regions_;
  std::vector<std::size_t> maker_;  // step that makes each node
};

}  // namespace

void schedule(Plan& plan, const ScheduleOptions& options) { Scheduler(plan, options).run(); }

}  // namespace gradwire
