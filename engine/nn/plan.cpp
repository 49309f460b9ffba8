#include "engine/nn/plan.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/half.h"
#include "engine/kernels/kernels.h"
#include "engine/nn/schedule.h"

namespace gradwire {
namespace {

using Op = NetworkOp;
constexpr std::uint32_t kNone = Op::kNone;
constexpr std::size_t kMostLanesOfVector = 16;

// More features would not fit 16 rows into the caches. The limit also bounds the reserved memory.
constexpr std::size_t kMostDenseFeatures = 1 << 15;

bool is_loss(OpKind kind) {
  return kind == OpKind::kCrossEntropy || kind == OpKind::kSquaredError || kind == OpKind::kCustomLoss;
}

// Returns whether the operation can run one sample as one lane. Kernels that work on vectors of lanes cannot,
// because they need a multiple of 4 lanes.
bool runs_single(OpKind kind) {
  return kind == OpKind::kFeatures || kind == OpKind::kSparseFeatures || kind == OpKind::kEmbed ||
         kind == OpKind::kAffine || kind == OpKind::kActivation || kind == OpKind::kAdd ||
         kind == OpKind::kMultiply || is_loss(kind);
}

// Returns whether the derivative is computed from the result, so that the result may overwrite the argument.
bool from_result(const Op& op) {
  return op.kind == OpKind::kActivation && op.activation != Activation::kGelu;
}

// Returns whether the backward pass reads the gradient of the result without changing it, and does not read
// the result itself.
bool reads_only(OpKind kind) {
  return kind == OpKind::kSparseFeatures || kind == OpKind::kEmbed || kind == OpKind::kAffine ||
         kind == OpKind::kNorm || kind == OpKind::kAttention || kind == OpKind::kConvolution ||
         kind == OpKind::kMaxPool || kind == OpKind::kAveragePool;
}

std::size_t round_up(std::size_t n) { return (n + kSlack - 1) / kSlack * kSlack; }

class Planner {
 public:
  Planner(const Network& network, std::size_t micro_batch, const PlanOptions& options)
      : network_(network),
        micro_batch_(micro_batch),
        options_(options),
        keep_gradients_(options.keep_gradients) {}

  Plan run() {
    for (const Op& op : ops_of_loss(network_)) plan_.steps.push_back({.op = op});
    plan_.micro_batch = micro_batch_;
    plan_.positions = network_.positions();
    plan_.single_lane =
        plan_.positions == 1 && std::all_of(plan_.steps.begin(), plan_.steps.end(),
                                            [](const auto& s) { return runs_single(s.op.kind); });
    plan_.capacity =
        (micro_batch_ * plan_.positions + kMostLanesOfVector - 1) / kMostLanesOfVector * kMostLanesOfVector;
    plan_.places.resize(network_.content().nodes.size());
    for (std::size_t n = 0; n < plan_.places.size(); ++n) plan_.places[n].shape = network_.content().nodes[n];
    find_uses();
    choose_layouts();
    place_values();
    share_gradients();
    decide_adds();
    place_gradients();
    decide_parameters();
    find_finals();
    size_scratch();
    // Plans that keep all gradients have no budget.
    const ScheduleOptions order{.kept = network_.kept_activations(),
                                .budget = keep_gradients_ ? ActivationBudget() : network_.activation_budget(),
                                .number_bytes = options_.number_bytes,
                                .up_again = keep_gradients_};
    if (order.kept != KeptActivations::kExact || !order.budget.is_none()) schedule(plan_, order);
    return std::move(plan_);
  }

 private:
  std::size_t made_by(std::uint32_t node) const { return maker_[node]; }
  const Op& maker_op(std::uint32_t node) const { return plan_.steps[maker_[node]].op; }

  void find_uses() {
    maker_.assign(plan_.places.size(), 0);
    uses_.assign(plan_.places.size(), {});
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const Op& op = plan_.steps[i].op;
      maker_[op.out] = i;
      for (const std::uint32_t in : op.in)
        if (in != kNone) uses_[in].push_back(i);
    }
  }

  // Chooses the layout of rows for data that only affine maps read. The gradients of such embeddings are rows
  // as well.
  void choose_layouts() {
    constexpr std::size_t kMinChannels = 32;  // channels; fewer are faster to transpose into lanes than to
                                              // read as rows
    for (const Plan::Step& step : plan_.steps) {
      if (step.op.kind != OpKind::kEmbed && step.op.kind != OpKind::kFeatures) continue;
      const std::uint32_t node = step.op.out;
      plan_.places[node].rows = plan_.places[node].shape.size() >= kMinChannels &&
                                std::all_of(uses_[node].begin(), uses_[node].end(), [&](std::size_t use) {
                                  return plan_.steps[use].op.kind == OpKind::kAffine;
                                });
    }
  }

  std::size_t numbers(std::uint32_t node) const {
    return round_up(plan_.places[node].shape.size() * plan_.capacity);
  }
  std::size_t take(std::size_t numbers) {
    const std::size_t at = plan_.value_numbers;
    plan_.value_numbers += round_up(numbers);
    return at;
  }

  // Returns whether an operation that reads x may overwrite it: no other operation reads x, and the backward
  // pass of the operation that made x does not read it.
  bool may_overwrite(std::uint32_t x) const {
    const OpKind kind = maker_op(x).kind;
    return uses_[x].size() == 1 && (reads_only(kind) || kind == OpKind::kAdd);
  }

  void place_values() {
    const std::size_t lanes = plan_.capacity;
    for (Plan::Step& step : plan_.steps) {
      const Op& op = step.op;
      Plan::ArenaPlace& out = plan_.places[op.out];
      if (from_result(op) && may_overwrite(op.in[0])) {
        out.value = plan_.places[op.in[0]].value;
      } else if (op.kind == OpKind::kAdd && op.in[0] != op.in[1] && may_overwrite(op.in[1])) {
        out.value = plan_.places[op.in[1]].value;
      } else if (op.kind == OpKind::kAdd && op.in[0] != op.in[1] && may_overwrite(op.in[0])) {
        out.value = plan_.places[op.in[0]].value;
      } else if (!is_loss(op.kind)) {
        out.value = take(numbers(op.out));
      }
      if (op.kind == OpKind::kNorm) step.keep = take(2 * lanes);
      if (op.kind == OpKind::kMaxPool) step.keep = take(out.shape.size() * lanes);
      if (op.kind == OpKind::kAttention) {
        step.keep =
            take(Attention<float>::kept(static_cast<Index>(op.heads), static_cast<Index>(micro_batch_),
                                        static_cast<Index>(plan_.positions)));
      }
    }
  }

  bool needs_gradient(std::uint32_t node) const {
    if (maker_op(node).kind != OpKind::kFeatures) return true;
    return !std::all_of(uses_[node].begin(), uses_[node].end(), [&](std::size_t use) {
      const OpKind kind = plan_.steps[use].op.kind;
      return kind == OpKind::kAffine || kind == OpKind::kConvolution;
    });
  }

  // Returns whether x may take over z's gradient for z = x + y, and change it after y's maker has read it.
  // Every operation that changes the gradient must come after y's maker in the backward pass, so it must run
  // before y's maker.
  bool may_share(std::size_t sum, std::uint32_t x, std::uint32_t y) const {
    if (x == y || uses_[y].size() != 1 || !reads_only(maker_op(y).kind)) return false;
    if (uses_[x].back() != sum || made_by(x) >= made_by(y)) return false;
    return std::all_of(uses_[x].begin(), uses_[x].end(),
                       [&](std::size_t use) { return use == sum || use < made_by(y); });
  }

  void share_gradients() {
    root_.resize(plan_.places.size());
    for (std::uint32_t n = 0; n < root_.size(); ++n) root_[n] = n;
    for (std::size_t i = plan_.steps.size(); i-- > 0;) {
      Plan::Step& step = plan_.steps[i];
      const Op& op = step.op;
      if (from_result(op) && plan_.places[op.out].value == plan_.places[op.in[0]].value) {
        root_[op.in[0]] = root_[op.out];  // written in place, not skipped
      } else if (op.kind == OpKind::kAdd && !keep_gradients_) {
        share_sum(step, i);
      }
    }
  }

  void share_sum(Plan::Step& step, std::size_t i) {
    const std::uint32_t x = step.op.in[0], y = step.op.in[1];
    if (may_share(i, x, y) || may_share(i, y, x)) {
      root_[x] = root_[y] = root_[step.op.out];
      step.skip[0] = step.skip[1] = true;
    } else if (x != y) {
      // One operand may still take over z's place. The other gets a copy first.
      for (const int k : {0, 1}) {
        const std::uint32_t node = step.op.in[k];
        if (uses_[node].back() != i) continue;
        root_[node] = root_[step.op.out];
        step.skip[k] = true;
        break;
      }
    }
  }

  void decide_adds() {
    std::vector<bool> assigned(plan_.places.size());
    for (std::size_t i = plan_.steps.size(); i-- > 0;) {
      Plan::Step& step = plan_.steps[i];
      for (int k = 0; k < 3; ++k) {
        const std::uint32_t in = step.op.in[k];
        if (in == kNone) continue;
        if (!needs_gradient(in)) step.skip[k] = true;
        if (!step.skip[k]) step.add[k] = assigned[in];
        assigned[in] = true;
      }
    }
  }

  // Places gradients by first fit, in the order of the backward pass. The first consumer in that order takes
  // a place when it writes. The place is free again when the last maker of the nodes that share it has run.
  void place_gradients() {
    struct Life {
      std::uint32_t root = 0;
      std::size_t from = 0, to = ~std::size_t{0}, numbers = 0;  // steps, from >= to
    };
    std::vector<Life> lives(plan_.places.size());
    for (const Plan::Step& step : plan_.steps) {
      const std::uint32_t node = step.op.out;
      if (uses_[node].empty() || !needs_gradient(node)) continue;
      Life& life = lives[root_[node]];
      life.root = root_[node];
      life.from = std::max(life.from, uses_[node].back());
      life.to = keep_gradients_ ? 0 : std::min(life.to, made_by(node));
      life.numbers = std::max(life.numbers, numbers(node));
    }
    std::erase_if(lives, [](const Life& life) { return life.numbers == 0; });
    std::stable_sort(lives.begin(), lives.end(),
                     [](const Life& a, const Life& b) { return a.from > b.from; });
    struct TakenBytes {
      std::size_t first, end, to;
    };
    std::vector<TakenBytes> taken;  // ascending
    std::vector<std::size_t> at(plan_.places.size(), Plan::kNowhere);
    for (const Life& life : lives) {
      if (!keep_gradients_) std::erase_if(taken, [&](const TakenBytes& t) { return t.to > life.from; });
      std::size_t first = 0;
      auto before = taken.begin();
      while (before != taken.end() && first + life.numbers > before->first) first = (before++)->end;
      taken.insert(before, {first, first + life.numbers, life.to});
      at[life.root] = first;
      plan_.gradient_numbers = std::max(plan_.gradient_numbers, first + life.numbers);
    }
    for (std::uint32_t n = 0; n < root_.size(); ++n)
      if (!uses_[n].empty() && needs_gradient(n)) plan_.places[n].gradient = at[root_[n]];
  }

  void decide_parameters() {
    struct Use {
      std::size_t first, end, step;
      bool scattered;
    };
    std::vector<Use> uses;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const Op& op = plan_.steps[i].op;
      for (int k = 0; k < 2; ++k) {
        if (op.count[k] == 0) continue;
        const bool scattered = op.kind == OpKind::kEmbed || (op.kind == OpKind::kSparseFeatures && k == 0);
        uses.push_back({op.first[k], op.first[k] + op.count[k], i, scattered});
      }
    }
    std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.first < b.first; });
    std::vector<bool> shared(uses.size());
    std::size_t widest = 0;  // the earlier use with the largest end
    for (std::size_t u = 1; u < uses.size(); ++u) {
      if (uses[u].first < uses[widest].end) shared[u] = shared[widest] = plan_.shared_parameters = true;
      if (uses[u].end > uses[widest].end) widest = u;
    }
    // If a third use overlaps two neighbours, `widest` makes sure that all three are marked as shared.
    std::size_t covered = 0;
    const auto zero = [this](std::size_t first, std::size_t end) {
      if (first < end) plan_.zeroed.push_back({first, end - first});
    };
    for (std::size_t u = 0; u < uses.size(); ++u) {
      Plan::Step& step = plan_.steps[uses[u].step];
      zero(covered, uses[u].first);  // parameters that no operation reads
      if (shared[u] || uses[u].scattered) zero(std::max(covered, uses[u].first), uses[u].end);
      step.add_parameters |= shared[u];
      covered = std::max(covered, uses[u].end);
    }
    zero(covered, network_.dim());
    // An operation adds to all its parameters or to none.
    for (const Use& use : uses)
      if (plan_.steps[use.step].add_parameters && !use.scattered) zero(use.first, use.end);
  }

  // Finds the step after which each gradient is final. Cuts the parameters wherever a range begins or ends.
  // The lowest step that reads a piece is the last one that adds to its gradient.
  void find_finals() {
    std::vector<std::size_t> cuts = {0, network_.dim()};
    for (const Plan::Step& step : plan_.steps)
      for (int k = 0; k < 2; ++k)
        for (const std::size_t cut : {step.op.first[k], step.op.first[k] + step.op.count[k]})
          if (step.op.count[k] > 0) cuts.push_back(cut);
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<std::size_t> last(cuts.size(), plan_.steps.size() - 1);
    for (std::size_t i = plan_.steps.size(); i-- > 0;)
      for (int k = 0; k < 2; ++k) {
        const Op& op = plan_.steps[i].op;
        auto piece = std::lower_bound(cuts.begin(), cuts.end(), op.first[k]) - cuts.begin();
        for (; op.count[k] > 0 && cuts[piece] < op.first[k] + op.count[k]; ++piece) last[piece] = i;
      }
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      auto& finals = plan_.finals;
      if (!finals.empty() && finals.back().step == last[c])
        finals.back().range.count += cuts[c + 1] - cuts[c];
      else
        finals.push_back({{cuts[c], cuts[c + 1] - cuts[c]}, last[c]});
    }
    std::stable_sort(plan_.finals.begin(), plan_.finals.end(),
                     [](const auto& a, const auto& b) { return a.step > b.step; });
  }

  void size_scratch() {
    const std::size_t lanes = plan_.capacity;
    for (const Plan::Step& step : plan_.steps) {
      const Op& op = step.op;
      const auto size = [&](std::uint32_t node) { return round_up(plan_.places[node].shape.size() * lanes); };
      std::size_t scratch = 0, turned = 0;
      if (op.kind == OpKind::kEmbed || op.kind == OpKind::kFeatures) scratch = size(op.out);
      if (op.kind == OpKind::kSparseFeatures) {
        const std::size_t out = plan_.places[op.out].shape.size(), in = op.count[0] / out;
        scratch = round_up(out) * lanes;
        if (in <= kMostDenseFeatures)
          plan_.dense_numbers = std::max(plan_.dense_numbers, micro_batch_ * feature_stride(in));
        if (in <= kMostDenseFeatures && op.count[0] >= kLargeLayer)
          turned = round_up(std::max(in, out)) * lanes;  // features or slopes of wide_features()
      }
      if (op.kind == OpKind::kNorm)  // the second term is for parameter gradients that are not needed
        scratch = size(op.out) + round_up(2 * plan_.places[op.out].shape.size());
      if (op.kind == OpKind::kAffine) {
        turned = size(op.in[0]);
        scratch = size(op.out);  // for random_affine_backward()
      }
      if (op.kind == OpKind::kConvolution) scratch = size(op.out);  // for tangents
      if (op.kind == OpKind::kAttention)
        scratch = static_cast<std::size_t>(Attention<float>::scratch_size(
            static_cast<Index>(plan_.places[op.out].shape.size()), static_cast<Index>(op.heads),
            static_cast<Index>(plan_.positions)));
      plan_.scratch_numbers = std::max(plan_.scratch_numbers, round_up(scratch));
      plan_.turned_numbers = std::max(plan_.turned_numbers, turned);
    }
  }

  const Network& network_;
  std::size_t micro_batch_;
  const PlanOptions options_;
  const bool keep_gradients_;
  Plan plan_;
  std::vector<std::size_t> maker_;              // step that makes each node
  std::vector<std::vector<std::size_t>> uses_;  // by node: the steps that read it, ascending
  std::vector<std::uint32_t> root_;             // by node: the node whose gradient's place it shares
};

}  // namespace

std::size_t feature_stride(std::size_t features) { return round_up(features) + kSlack; }

Plan make_plan(const Network& network, std::size_t micro_batch, const PlanOptions& options) {
  return Planner(network, micro_batch, options).run();
}

// Rounds up, so that the rows of dense features, which come next, begin at a cache line.
std::size_t arena_numbers(const Plan& plan) {
  return round_up(plan.value_numbers + plan.gradient_numbers + plan.scratch_numbers + plan.turned_numbers +
                  kSlack);
}

std::size_t arena_bytes(const Plan& plan, std::size_t number_bytes) {
  return number_bytes * (arena_numbers(plan) + plan.dense_numbers) + sizeof(BFloat16) * plan.kept_numbers +
         kArenaAlignment;
}

std::size_t padded_lanes(const Plan& plan, std::size_t samples, std::size_t vector) {
  const std::size_t lanes = samples * plan.positions;
  if (lanes == 1 && plan.single_lane) return 1;
  std::size_t unit = std::max<std::size_t>(4, vector / 2);
  while (unit > 4 && lanes <= unit / 2) unit /= 2;
  return (lanes + unit - 1) / unit * unit;
}

}  // namespace gradwire
