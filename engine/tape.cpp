#include "engine/tape.h"

#include <algorithm>
#include <limits>

#include "engine/tape_kernels.h"

namespace gradwire {

template <class R>
Tape<R>::Tape(std::size_t parameters)
    : parameters_(static_cast<std::uint32_t>(parameters)), first_(parameters_ + kDeadSlots), swept_(first_) {
  grow_slots(parameters + kDeadSlots);
  slots_ = first_;
}

template <class R>
auto Tape<R>::leaves(std::span<const Real> values) -> Range {
  const Operation& op = record(Kind::kLeaves, static_cast<std::uint32_t>(values.size()));
  std::copy(values.begin(), values.end(), value_.begin() + op.out);
  return {this, op.out, op.slots};
}

template <class R>
auto Tape<R>::pack(std::span<const Var> scalars) -> Range {
  for (const Var& x : scalars) check(x);
  Operation& op = record(Kind::kPack, static_cast<std::uint32_t>(scalars.size()));
  op.a = static_cast<std::uint32_t>(link_.size());
  for (std::size_t i = 0; i < scalars.size(); ++i) {
    link_.push_back(scalars[i].slot());
    value_[op.out + i] = scalars[i].value();
  }
  return {this, op.out, op.slots};
}

template <class R>
auto Tape<R>::affine(const Range& weights, const Range& bias, const Range& x) -> Range {
  const std::uint32_t w = checked(weights), b = checked(bias), in = checked(x);
  if (std::size_t{x.size()} * bias.size() != weights.size()) {
    throw std::logic_error("affine: " + std::to_string(weights.size()) + " weights do not map " +
                           std::to_string(x.size()) + " inputs to " + std::to_string(bias.size()) +
                           " outputs");
  }
  Operation& op = record(Kind::kAffine, bias.size());
  op.a = w;
  op.b = b;
  op.c = in;
  op.size = x.size();
  Real* v = value_.data();
  kernels::affine<Real>(op.size, op.slots, v + w, v + b, v + in, v + op.out);
  return {this, op.out, op.slots};
}

template <class R>
auto Tape<R>::affine(const Range& weights, const Range& bias, const SparseInput<Real>& x) -> Range {
  const std::uint32_t w = checked(weights), b = checked(bias);
  const std::size_t last = x.index.empty() ? 0 : x.index.back();
  const std::size_t inputs = bias.size() == 0 ? 0 : weights.size() / bias.size();
  if (x.index.size() != x.value.size() || inputs * bias.size() != weights.size() ||
      (!x.index.empty() && last >= inputs)) {
    throw std::logic_error("affine: " + std::to_string(weights.size()) +
                           " weights do not map an input with index " + std::to_string(last) + " to " +
                           std::to_string(bias.size()) + " outputs");
  }
  Operation& op = record(Kind::kSparseAffine, bias.size());
  op.a = w;
  op.b = b;
  op.input = x;
  Real* v = value_.data();
  kernels::sparse_affine<Real>(x.index.size(), op.slots, v + w, v + b, x.index.data(), x.value.data(),
                               v + op.out);
  return {this, op.out, op.slots};
}

template <class R>
auto Tape<R>::tanh(const Range& x) -> Range {
  const std::uint32_t in = checked(x);
  Operation& op = record(Kind::kTanh, x.size());
  op.a = in;
  kernels::tanh<Real>(op.slots, value_.data() + in, value_.data() + op.out);
  return {this, op.out, op.slots};
}

template <class R>
auto Tape<R>::relu(const Range& x) -> Range {
  const std::uint32_t in = checked(x);
  Operation& op = record(Kind::kRelu, x.size());
  op.a = in;
  kernels::relu<Real>(op.slots, value_.data() + in, value_.data() + op.out);
  return {this, op.out, op.slots};
}

template <class R>
auto Tape<R>::inner_product(const Range& a, const Range& b) -> Var {
  const std::uint32_t first = checked(a), second = checked(b);
  if (a.size() != b.size()) {
    throw std::logic_error("inner_product of " + std::to_string(a.size()) + " and " +
                           std::to_string(b.size()) + " numbers");
  }
  Operation& op = record(Kind::kInnerProduct, 1);
  op.a = first;
  op.b = second;
  op.size = a.size();
  value_[op.out] = kernels::dot<Real>(op.size, value_.data() + first, value_.data() + second);
  return at(op.out);
}

template <class R>
auto Tape<R>::softmax_cross_entropy(const Range& logits, std::size_t label) -> Var {
  const std::uint32_t in = checked(logits);
  if (label >= logits.size()) {
    throw std::logic_error("softmax_cross_entropy: label " + std::to_string(label) + " of " +
                           std::to_string(logits.size()) + " classes");
  }
  Operation& op = record(Kind::kCrossEntropy, 1 + logits.size());  // the loss, then the probabilities
  op.a = in;
  op.size = logits.size();
  op.label = label;
  Real* v = value_.data();
  v[op.out] = kernels::softmax_cross_entropy<Real>(op.size, v + in, label, v + op.out + 1);
  return at(op.out);
}

template <class R>
void Tape<R>::backward(const Var& root, Real seed) {
  check(root);
  std::fill(gradient_.begin() + first_, gradient_.begin() + swept_, Real(0));
  swept_ = slots_;
  gradient_[root.slot()] += seed;
  // What was recorded after the root does not matter to it, and is left out.
  std::uint32_t end = statements_;
  for (std::size_t k = operation_.size(); k-- > 0;) {
    const Operation& op = operation_[k];
    sweep_statements(op.statements, end, op.out + op.slots, root.slot());
    end = op.statements;
    if (op.out <= root.slot()) backward(op);
  }
  sweep_statements(0, end, first_, root.slot());
}

// Statements [begin, end), the first of which has the slot first_slot; those after the root are left out.
template <class R>
void Tape<R>::sweep_statements(std::uint32_t begin, std::uint32_t end, std::uint32_t first_slot,
                               std::uint32_t root) {
  if (root < first_slot) return;
  end = std::min(end, begin + (root - first_slot) + 1);
  const Statement* statement = statement_.data();
  Real* gradient = gradient_.data();
  for (std::uint32_t i = end; i-- > begin;) {
    const Real d = gradient[first_slot + (i - begin)];
    if (d == Real(0)) continue;  // no influence: an infinite derivative must not turn it into nan
    gradient[statement[i].a] += statement[i].da * d;
    gradient[statement[i].b] += statement[i].db * d;
  }
}

template <class R>
void Tape<R>::backward(const Operation& op) {
  const Real* v = value_.data();
  Real* g = gradient_.data();
  const Real* dy = g + op.out;
  switch (op.kind) {
    case Kind::kLeaves: break;
    case Kind::kPack:
      for (std::uint32_t i = 0; i < op.slots; ++i) g[link_[op.a + i]] += dy[i];
      break;
    case Kind::kAffine:
      kernels::affine_backward<Real>(op.size, op.slots, v + op.a, v + op.c, dy, g + op.a, g + op.b, g + op.c);
      break;
    case Kind::kSparseAffine:
      kernels::sparse_affine_backward<Real>(op.input.index.size(), op.slots, op.input.index.data(),
                                            op.input.value.data(), dy, g + op.a, g + op.b);
      break;
    case Kind::kTanh: kernels::tanh_backward<Real>(op.slots, v + op.out, dy, g + op.a); break;
    case Kind::kRelu: kernels::relu_backward<Real>(op.slots, v + op.out, dy, g + op.a); break;
    case Kind::kInnerProduct:
      kernels::add_scaled<Real>(op.size, dy[0], v + op.b, g + op.a);
      kernels::add_scaled<Real>(op.size, dy[0], v + op.a, g + op.b);
      break;
    case Kind::kCrossEntropy:
      kernels::softmax_cross_entropy_backward<Real>(op.size, v + op.out + 1, op.label, dy[0], g + op.a);
      break;
  }
}

template <class R>
void Tape<R>::zero_parameter_gradients() {
  std::fill_n(gradient_.begin(), parameters_, Real(0));
}

template <class R>
auto Tape<R>::checkpoint() const -> Checkpoint {
  return {.slots = slots_,
          .statements = statements_,
          .operations = static_cast<std::uint32_t>(operation_.size()),
          .links = static_cast<std::uint32_t>(link_.size())};
}

template <class R>
void Tape<R>::rewind(const Checkpoint& to) {
  if (to.slots < first_ || to.slots > slots_ || to.statements > statements_ ||
      to.operations > operation_.size() || to.links > link_.size()) {
    throw std::logic_error("rewind to a checkpoint that is not behind this tape");
  }
  slots_ = to.slots;
  swept_ = std::min(swept_, slots_);
  statements_ = to.statements;
  operation_.resize(to.operations);
  link_.resize(to.links);
}

template <class R>
std::uint32_t Tape<R>::checked(const Range& x) const {
  if (x.owner() != this) throw_foreign(x.owner() == nullptr);
  if (x.size() > slots_ || x.first() > slots_ - x.size()) throw_stale();
  return x.first();
}

template <class R>
void Tape<R>::throw_foreign(bool none) {
  throw std::logic_error(none ? "a Var that belongs to no tape: make it with Tape::leaf first"
                              : "an operation on Vars of two tapes");
}

template <class R>
void Tape<R>::throw_stale() {
  throw std::logic_error("a Var was used after its tape was rewound past it");
}

template <class R>
auto Tape<R>::record(Kind kind, std::uint32_t result_slots) -> Operation& {
  if (result_slots > value_.size() - slots_) grow_slots(result_slots);
  Operation& op = operation_.emplace_back();
  op.kind = kind;
  op.out = slots_;
  op.slots = result_slots;
  op.statements = statements_;
  std::fill_n(gradient_.begin() + slots_, result_slots, Real(0));
  slots_ += result_slots;
  return op;
}

template <class R>
void Tape<R>::grow_slots(std::size_t more) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (more > kMost - slots_)
    throw std::length_error("the tape is full: 2^32 numbers are recorded; rewind it");
  // Twice what is recorded; parameters, which do not grow, are not doubled. The first step is small on
  // purpose: with value_ and gradient_ a multiple of 4 KiB apart, small graphs were measured twice as slow
  // (stores to the one hold up loads from the other).
  constexpr std::size_t kFirstSlots = 64;
  const std::size_t recorded = slots_ > first_ ? slots_ - first_ : 0;
  const std::size_t slots = std::min(kMost, slots_ + std::max(more, recorded + kFirstSlots));
  value_.resize(slots);
  gradient_.resize(slots);
}

template <class R>
void Tape<R>::grow_statements() {
  constexpr std::size_t kFirstStatements = 64;
  statement_.resize(2 * statement_.size() + kFirstStatements);
}

template class Tape<float>;
template class Tape<double>;

}  // namespace gradwire
