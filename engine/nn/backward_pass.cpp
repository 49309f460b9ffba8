#include "engine/nn/backward_pass.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace gradwire {
namespace {

using Op = NetworkOp;

CoordinateRange hull_of(const Coordinates& wanted, const Op& op, int k) {
  return wanted.hull({op.first[k], op.first[k] + op.count[k]});
}

BackwardPart part_of(const Plan& plan, const Plan::Step& step, const Coordinates& wanted,
                     const std::vector<bool>& needed) {
  const Op& op = step.op;
  BackwardPart part;
  const CoordinateRange weights = hull_of(wanted, op, 0), second = hull_of(wanted, op, 1);
  part.parameters = !weights.empty() || !second.empty();
  part.runs = part.parameters;
  for (int k = 0; k < 3; ++k) {
    part.input[k] = op.in[k] != Op::kNone && needed[op.in[k]];
    part.runs |= part.input[k];
  }
  if (op.kind == OpKind::kAffine) {
    const std::size_t in = plan.places[op.in[0]].shape.size();
    part.rows = weights.empty() ? CoordinateRange{}
                                : CoordinateRange{(weights.first - op.first[0]) / in,
                                                  (weights.end - op.first[0] + in - 1) / in};
  }
  return part;
}

}  // namespace

OpCost cost_of(const Plan& plan, const Plan::Step& step) {
  const Op& op = step.op;
  const auto size = [&](std::uint32_t node) { return static_cast<double>(plan.places[node].shape.size()); };
  const double out = size(op.out);
  switch (op.kind) {
    case OpKind::kFeatures: return {out, 0, 0};
    case OpKind::kSparseFeatures: {
      const double weights = static_cast<double>(op.count[0]);
      return {weights / 2, 0, weights / 2};
    }
    case OpKind::kEmbed: return {2 * out, 0, 6 * out};
    case OpKind::kAffine: {
      const double weights = size(op.in[0]) * out;
      return {weights + 4 * out, weights, weights + 8 * out};
    }
    case OpKind::kActivation: return {op.activation == Activation::kRelu ? 2 * out : 24 * out, 6 * out, 0};
    case OpKind::kAdd: return {3 * out, 3 * out, 0};
    case OpKind::kMultiply: return {3 * out, 6 * out, 0};
    case OpKind::kNorm: return {20 * out, 20 * out, 12 * out};
    case OpKind::kAttention: {
      const double positions = static_cast<double>(plan.positions), heads = static_cast<double>(op.heads);
      return {2 * positions * out + 12 * heads * positions, 5 * positions * out + 8 * heads * positions, 0};
    }
    case OpKind::kConvolution: {
      const TensorShape& to = plan.places[op.out].shape;
      const double products = static_cast<double>(op.count[0] * to.height * to.width);
      return {1.5 * products, 1.5 * products, 2 * products};
    }
    case OpKind::kMaxPool:
    case OpKind::kAveragePool: return {2 * size(op.in[0]), 2 * size(op.in[0]), 0};
    case OpKind::kMeanOverPositions: return {4 * out, 4 * out, 0};
    case OpKind::kCrossEntropy:
    case OpKind::kSquaredError:
    case OpKind::kCustomLoss: return {24 * size(op.in[0]), 0, 0};
  }
  return {};
}

void BackwardPass::plan(const Plan& plan, const GradientOptions& options) {
  options_ = &options;
  whole_pass_ = options.wanted.all();
  first_ = 0;
  if (whole_pass_) return;
  parts_.resize(plan.steps.size());
  needed_.assign(plan.places.size(), false);
  first_ = plan.steps.size() - 1;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    parts_[i] = part_of(plan, plan.steps[i], options.wanted, needed_);
    needed_[plan.steps[i].op.out] = parts_[i].runs;
    if (parts_[i].runs) first_ = std::min(first_, i);
  }
}

double backward_cost(const Plan& plan, const BackwardPass& pass) {
  double whole = 0, needed = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Plan::Step& step = plan.steps[i];
    const OpCost cost = cost_of(plan, step);
    const BackwardPart& part = pass.part(i);
    const bool input = step.op.in[0] != Op::kNone && !step.skip[0];
    whole += cost.forward + (input ? cost.input : 0) + cost.parameters;
    needed += cost.forward;
    if (input && (part.input[0] || part.input[1] || part.input[2])) needed += cost.input;
    if (!part.parameters) continue;
    const double out = static_cast<double>(plan.places[step.op.out].shape.size());
    const bool rows = step.op.kind == OpKind::kAffine && part.rows.end != BackwardPart::kAllRows;
    needed += cost.parameters * (rows ? std::max(static_cast<double>(part.rows.size()), 1.0) / out : 1);
  }
  // Add the forward steps that run again.
  bool runs = true;
  for (std::size_t t = plan.forward_actions; t < plan.backward_actions; ++t) {
    const Plan::Action& action = plan.actions[t];
    if (action.kind == Plan::Action::Kind::kBackward && action.number < pass.first_step()) runs = false;
    if (action.kind != Plan::Action::Kind::kForward) continue;
    const double again = cost_of(plan, plan.steps[action.number]).forward;
    whole += again;
    if (runs) needed += again;
  }
  return std::min(1.0, needed / whole);
}

KeptUnits keep_units(const RandomPaths& paths, std::size_t step, std::size_t micro_batch, std::size_t units) {
  if (paths.share >= 1 || units < kFewestRandomUnits) return {0, units, units};
  const auto count = static_cast<std::size_t>(std::lround(paths.share * static_cast<double>(units)));
  // The kept units are consecutive, because kernels work on adjacent rows. The order of units has no meaning,
  // so it does not matter that neighbours are kept together.
  Random random(paths.key, "random paths", (static_cast<std::uint64_t>(micro_batch) << 20) + step);
  return {static_cast<std::size_t>(random.below(units)), std::max<std::size_t>(count, 1), units};
}

}  // namespace gradwire
