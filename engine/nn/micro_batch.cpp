#include "engine/nn/micro_batch.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/data/dataset.h"

namespace gradwire {
namespace {

[[noreturn]] void refuse_length(const char* what, std::size_t given, std::size_t needed) {
  throw DataError("a sample has " + std::to_string(given) + " " + what + " but the network reads " +
                  std::to_string(needed));
}

bool ascends(std::span<const std::uint32_t> numbers) {
  unsigned wrong = 0;
  for (std::size_t k = 1; k < numbers.size(); ++k) wrong |= numbers[k] <= numbers[k - 1] ? 1u : 0u;
  return wrong == 0;
}

// Throws DataError unless all numbers of a sample are below `end`. `what` names them in the message.
template <class T>
void check_below(const char* what, std::span<const T> numbers, std::size_t end) {
  T most = 0;
  for (const T n : numbers) most = std::max(most, n);
  if (!numbers.empty() && most >= end) {
    throw DataError(std::string("a sample has the ") + what + " " + std::to_string(most) +
                    " but the network knows 0 to " + std::to_string(end - 1));
  }
}

}  // namespace

template <class Real>
void MicroBatch<Real>::ArenaDeleter::operator()(Real* p) const {
  ::operator delete[](p, std::align_val_t{kArenaAlignment});
}

template <class Real>
MicroBatch<Real>::MicroBatch(const Network& network, Plan plan, const Kernels<Real>& kernels,
                             std::span<std::byte> memory)
    : network_(network), plan_(std::move(plan)), kernels_(kernels) {
  const std::size_t numbers = arena_numbers(plan_);
  if (memory.empty()) {
    // calloc() gives pages of zeros that take memory only once they are used. Small batches use few of them.
    arena_.reset(static_cast<std::byte*>(std::calloc(arena_bytes(plan_), 1)));
    if (arena_ == nullptr) throw std::bad_alloc();
    memory = {arena_.get(), arena_bytes(plan_)};
  }
  void* start = memory.data();
  std::size_t left = memory.size();
  if (std::align(kArenaAlignment, arena_bytes(plan_) - kArenaAlignment, start, left) == nullptr)
    throw std::logic_error("a network was given an arena of " + std::to_string(memory.size()) +
                           " bytes; it needs " + std::to_string(arena_bytes(plan_)));
  values_ = static_cast<Real*>(start);
  if (arena_ == nullptr) std::fill_n(values_, numbers, Real(0));
  slopes_ = values_ + plan_.value_numbers;
  scratch_ = slopes_ + plan_.gradient_numbers;
  turned_ = scratch_ + plan_.scratch_numbers;
  dense_ = values_ + numbers;
  kept_ = reinterpret_cast<BFloat16*>(dense_ + plan_.dense_numbers);
  for (const Plan::ArenaPlace& place : plan_.places)
    where_.push_back(place.value == Plan::kNowhere ? nullptr : values_ + place.value);
  for (const Step& step : plan_.steps)
    keep_.push_back(step.keep == Plan::kNowhere ? nullptr : values_ + step.keep);
  sample_.resize(plan_.micro_batch);
  features_.resize(plan_.micro_batch);
  label_.resize(plan_.capacity);
  for (auto* numbers_by_lane : {&seed_, &top_, &total_}) numbers_by_lane->resize(plan_.capacity);
  const Op& loss = plan_.steps.back().op;
  if (loss.kind == OpKind::kCustomLoss)
    for (auto* row : {&output_, &target_, &derivative_})
      row->resize(static_cast<std::size_t>(channels(loss.in[0])));
}

template <class Real>
void MicroBatch<Real>::check(const Example<Real>& e, bool ascending) const {
  for (const Step& step : plan_.steps) {
    const Op& op = step.op;
    const std::size_t width = plan_.places[op.out].shape.size();
    switch (op.kind) {
      case OpKind::kEmbed:
        if (e.tokens.size() != plan_.positions * op.tokens)
          refuse_length("tokens", e.tokens.size(), plan_.positions * op.tokens);
        check_below("token", e.tokens, op.count[0] / (width / op.tokens));
        break;
      case OpKind::kFeatures:
        if (e.features.size() != plan_.positions * width)
          refuse_length("features", e.features.size(), plan_.positions * width);
        break;
      case OpKind::kSparseFeatures:
        if (e.index.size() != e.value.size())
          refuse_length("values of features", e.value.size(), e.index.size());
        check_below("feature", ascending && !e.index.empty() ? e.index.last(1) : e.index,
                    op.count[0] / width);
        break;
      case OpKind::kCrossEntropy:
        if (e.labels.size() != plan_.positions) refuse_length("labels", e.labels.size(), plan_.positions);
        check_below("label", e.labels, static_cast<std::size_t>(channels(op.in[0])));
        break;
      case OpKind::kSquaredError: {
        const std::size_t needed = plan_.positions * static_cast<std::size_t>(channels(op.in[0]));
        if (e.targets.size() != needed) refuse_length("targets", e.targets.size(), needed);
        break;
      }
      case OpKind::kCustomLoss:
        if (!e.labels.empty() && e.labels.size() != plan_.positions)
          refuse_length("labels", e.labels.size(), plan_.positions);
        if (e.targets.size() % plan_.positions != 0)
          refuse_length("targets", e.targets.size(), plan_.positions);
        break;
      default: break;
    }
  }
}

template <class Real>
void MicroBatch<Real>::push(const Example<Real>& example) {
  // Samples may lie anywhere in memory. The processor fetches the start of this one while the next ones are
  // pushed.
  if (!example.tokens.empty()) __builtin_prefetch(example.tokens.data());
  if (!example.labels.empty()) __builtin_prefetch(example.labels.data());
  sample_[samples_++] = example;
}

template <class Real>
void MicroBatch<Real>::read(std::size_t s) {
  const Example<Real>& example = sample_[s];
  const bool ascending = ascends(example.index);
  check(example, ascending);
  const std::size_t count = example.index.size();
  features_[s] = {example.index.data(), example.value.data(), static_cast<Index>(count)};
  nonzeros_ += count;
  ascending_ = ascending_ && ascending;
}

template <class Real>
void MicroBatch<Real>::start_forward() {
  for (; read_ < samples_; ++read_) read(read_);
  real_lanes_ = static_cast<Index>(samples_ * plan_.positions);
  lanes_ = static_cast<Index>(padded_lanes(plan_, samples_, static_cast<std::size_t>(kernels_.vector)));
  turned_node_ = Op::kNone;
  dense_in_ = 0;
}

template <class Real>
std::optional<double> MicroBatch<Real>::forward(const Real* x, Real seed, const std::atomic<bool>* stop) {
  start_forward();
  const std::size_t last = plan_.steps.size() - 1;
  if (!plan_.actions.empty()) {
    if (!follow(0, plan_.forward_actions, x, stop, [](std::size_t) { return true; })) return std::nullopt;
  } else {
    for (std::size_t i = 0; i < last; ++i) {
      if (stopped(stop)) return std::nullopt;
      forward(plan_.steps[i], x);
    }
  }
  return loss(plan_.steps[last], seed / static_cast<Real>(plan_.positions)) /
         static_cast<double>(plan_.positions);
}

template <class Real>
bool MicroBatch<Real>::backward(const Real* x, Real* gradient, bool add, const BackwardPass& pass) {
  const GradientOptions* options = pass.options();
  const auto wants = [options](const Plan::PlanRange& range) {
    return options == nullptr || !options->wanted.hull({range.first, range.first + range.count}).empty();
  };
  if (!add)
    for (const Plan::PlanRange& range : plan_.zeroed)
      if (wants(range)) std::fill_n(gradient + range.first, range.count, Real(0));
  turned_node_ = Op::kNone;
  const bool tells = options != nullptr && options->finished && pass.last_micro_batch;
  auto next = plan_.finals.begin();
  const auto tell = [&](std::size_t step) {
    for (; next != plan_.finals.end() && next->step >= step; ++next)
      if (wants(next->range)) options->finished({next->range.first, next->range.first + next->range.count});
  };
  if (tells) tell(plan_.steps.size() - 1);
  const auto back = [&](std::size_t i) {
    const BackwardPart& part = pass.part(i);
    if (!part.runs) return;
    const Step& step = plan_.steps[i];
    const bool adds = add || step.add_parameters;
    const bool random = options != nullptr && options->paths.share < 1 && step.op.kind == OpKind::kAffine;
    if (random)
      random_affine_backward(
          step, part,
          keep_units(options->paths, i, pass.micro_batch, static_cast<std::size_t>(channels(step.op.out))), x,
          gradient, adds);
    else
      backward(step, part, x, gradient, adds);
    if (tells) tell(i);
  };
  const std::atomic<bool>* stop = options == nullptr ? nullptr : options->stop;
  const std::size_t lowest = pass.first_step();
  if (!plan_.actions.empty())
    return follow(plan_.forward_actions, plan_.backward_actions, x, stop, [&](std::size_t i) {
      if (i >= lowest) back(i);
      return i > lowest;
    });
  for (std::size_t i = plan_.steps.size() - 1; i-- > lowest;) {
    if (stopped(stop)) return false;
    back(i);
  }
  return true;
}

template <class Real>
void MicroBatch<Real>::forward(const Step& step, const Real* x) {
  const Op& op = step.op;
  Real* out = value(op.out);
  const Real* in = op.in[0] != Op::kNone ? value(op.in[0]) : nullptr;
  const Index n = numbers(op.out);
  switch (op.kind) {
    case OpKind::kFeatures:
      fill_rows(step, out, [&](const Example<Real>& e, std::size_t position, Real* row) {
        const std::size_t width = plan_.places[op.out].shape.size();
        std::copy_n(e.features.data() + position * width, width, row);
      });
      break;
    case OpKind::kSparseFeatures: features_forward(step, x, out); break;
    case OpKind::kEmbed: embed(step, x, out); break;
    case OpKind::kAffine: affine(step, x, out); break;
    case OpKind::kActivation: kernels_.activation_forward[static_cast<int>(op.activation)](n, in, out); break;
    case OpKind::kAdd: kernels_.add(n, in, value(op.in[1]), out); break;
    case OpKind::kMultiply: kernels_.multiply(n, in, value(op.in[1]), false, out); break;
    case OpKind::kNorm:
      kernels_.norm_forward(in, channels(op.out), lanes_, x + op.first[0], static_cast<Real>(op.epsilon),
                            keep(step), out);
      break;
    case OpKind::kAttention: kernels_.attention_forward(attention(step), out); break;
    case OpKind::kConvolution:
      kernels_.convolution_forward(image(op), in, x + op.first[0], x + op.first[1], out);
      break;
    case OpKind::kMaxPool: kernels_.max_pool_forward(image(op), in, keep(step), out); break;
    case OpKind::kAveragePool: kernels_.average_pool_forward(image(op), in, out); break;
    case OpKind::kMeanOverPositions: mean_over_positions(op.out, in, false, out); break;
    case OpKind::kCrossEntropy:
    case OpKind::kSquaredError:
    case OpKind::kCustomLoss: break;
  }
}

template <class Real>
void MicroBatch<Real>::backward(const Step& step, const BackwardPart& part, const Real* x, Real* gradient,
                                bool add) {
  const Op& op = step.op;
  const Real* dy = slope(op.out);
  Real* dx = op.in[0] != Op::kNone ? slope(op.in[0]) : nullptr;
  const Index n = numbers(op.out);
  switch (op.kind) {
    case OpKind::kFeatures: break;
    case OpKind::kSparseFeatures: features_backward(step, gradient, add); break;
    case OpKind::kEmbed: embed_backward(step, gradient); break;
    case OpKind::kAffine: affine_backward(step, part, x, gradient, add); break;
    case OpKind::kActivation:
      kernels_.activation_backward[static_cast<int>(op.activation)](
          n, value(op.activation == Activation::kGelu ? op.in[0] : op.out), dy, step.add[0], dx);
      break;
    case OpKind::kAdd: add_backward(step, part); break;
    case OpKind::kMultiply: multiply_backward(step, part); break;
    case OpKind::kNorm:
      kernels_.norm_backward(value(op.in[0]), dy, channels(op.out), lanes_, x + op.first[0], keep(step),
                             step.add[0], dx, add, part.parameters ? gradient + op.first[0] : scratch_ + n,
                             scratch_);
      break;
    case OpKind::kAttention: {
      Real* const d[3] = {dx, slope(op.in[1]), slope(op.in[2])};
      kernels_.attention_backward(attention(step), dy, step.add, d);
      break;
    }
    case OpKind::kConvolution: convolution_backward(step, part, x, gradient, add); break;
    case OpKind::kMaxPool: kernels_.max_pool_backward(image(op), dy, keep(step), step.add[0], dx); break;
    case OpKind::kAveragePool: kernels_.average_pool_backward(image(op), dy, step.add[0], dx); break;
    case OpKind::kMeanOverPositions: mean_over_positions(op.out, dy, step.add[0], dx); break;
    case OpKind::kCrossEntropy:
    case OpKind::kSquaredError:
    case OpKind::kCustomLoss: break;
  }
}

// ---- data ----

template <class Real>
template <class Row>
void MicroBatch<Real>::fill_rows(const Step& step, Real* out, Row&& row) {
  const std::uint32_t node = step.op.out;
  const Index width = channels(node);
  Real* rows = as_rows(node) ? out : scratch_;
  for (Index l = 0; l < lanes_; ++l) {
    if (l < real_lanes_)
      row(sample_[sample_of(l)], position_of(l), rows + l * width);
    else
      std::copy_n(rows, width, rows + l * width);
  }
  if (rows != out) kernels_.transpose(rows, lanes_, width, width, out, lanes_);
}

template <class Real>
void MicroBatch<Real>::embed(const Step& step, const Real* x, Real* out) {
  const Op& op = step.op;
  const std::size_t width = plan_.places[op.out].shape.size() / op.tokens;
  const Real* table = x + op.first[0];
  fill_rows(step, out, [&](const Example<Real>& e, std::size_t position, Real* row) {
    const Token* token = e.tokens.data() + position * op.tokens;
    for (std::size_t k = 0; k < op.tokens; ++k)
      std::memcpy(row + k * width, table + token[k] * width, width * sizeof(Real));
    if (op.count[1] == 0) return;
    const Real* offset = x + op.first[1] + position * width;
    for (std::size_t c = 0; c < width; ++c) row[c] += offset[c];
  });
}

template <class Real>
void MicroBatch<Real>::embed_backward(const Step& step, Real* gradient) {
  const Op& op = step.op;
  const Index all = channels(op.out), width = all / static_cast<Index>(op.tokens);
  const Real* rows = slope(op.out);
  if (!as_rows(op.out)) {
    kernels_.transpose(rows, all, lanes_, lanes_, scratch_, all);
    rows = scratch_;
  }
  for (Index l = 0; l < real_lanes_; ++l) {
    const std::size_t position = position_of(l);
    const Token* token = sample_[sample_of(l)].tokens.data() + position * op.tokens;
    for (std::size_t k = 0; k < op.tokens; ++k)
      kernels_.axpy(width, Real(1), rows + l * all + static_cast<Index>(k) * width,
                    gradient + op.first[0] + token[k] * static_cast<std::size_t>(width));
    if (op.count[1] > 0)
      kernels_.axpy(width, Real(1), rows + l * all,
                    gradient + op.first[1] + position * static_cast<std::size_t>(width));
  }
}

template <class Real>
void MicroBatch<Real>::copy_outputs(std::size_t sample, std::span<Real> outputs) const {
  const std::uint32_t node = plan_.steps.back().op.in[0];
  const Index width = channels(node);
  for (std::size_t t = 0; t < plan_.positions; ++t) {
    const Index lane = static_cast<Index>(sample * plan_.positions + t);
    Real* to = outputs.data() + static_cast<Index>(t) * width;
    for (Index c = 0; c < width; ++c)
      to[c] = as_rows(node) ? value(node)[lane * width + c] : value(node)[c * lanes_ + lane];
  }
}

// These are instantiated member by member. The other micro_batch_*.cpp files instantiate the members that
// they define.
#define GRADWIRE_INSTANTIATE(Real)                                                                         \
  template MicroBatch<Real>::MicroBatch(const Network&, Plan, const Kernels<Real>&, std::span<std::byte>); \
  template void MicroBatch<Real>::push(const Example<Real>&);                                              \
  template void MicroBatch<Real>::read(std::size_t);                                                       \
  template std::optional<double> MicroBatch<Real>::forward(const Real*, Real, const std::atomic<bool>*);   \
  template bool MicroBatch<Real>::backward(const Real*, Real*, bool, const BackwardPass&);                 \
  template void MicroBatch<Real>::start_forward();                                                         \
  template void MicroBatch<Real>::forward(const Plan::Step&, const Real*);                                 \
  template void MicroBatch<Real>::backward(const Plan::Step&, const BackwardPart&, const Real*, Real*,     \
                                           bool);                                                          \
  template void MicroBatch<Real>::embed(const Plan::Step&, const Real*, Real*);                            \
  template void MicroBatch<Real>::copy_outputs(std::size_t, std::span<Real>) const;                        \
  template void MicroBatch<Real>::ArenaDeleter::operator()(Real*) const;
GRADWIRE_INSTANTIATE(float)
GRADWIRE_INSTANTIATE(double)
#undef GRADWIRE_INSTANTIATE

}  // namespace gradwire
