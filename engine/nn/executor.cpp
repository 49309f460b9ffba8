#include "engine/nn/executor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/kernels/select.h"
#include "engine/nn/backward_pass.h"
#include "engine/nn/micro_batch.h"

namespace gradwire {
namespace {

constexpr std::size_t kMostSamples = 16;  // the largest microbatch without large layers

bool has_large_layer(const Plan& plan) {
  return std::ranges::any_of(plan.steps, [](const Plan::Step& step) {
    return (step.op.kind == OpKind::kAffine || step.op.kind == OpKind::kSparseFeatures) &&
           step.op.count[0] >= kLargeLayer;
  });
}

// Returns the number of samples that gives enough lanes for the widest tiles. It is larger if a sample has
// few positions, and smaller if the samples would take much memory. Four samples still fill the narrowest
// registers. A network with a large layer takes at least four times as many samples, if the arena is then not
// larger than the parameters and their gradient.
template <class Real>
std::size_t choose_micro_batch(Network network) {
  constexpr std::size_t kLanes = 32, kFewest = 4, kArenaBytes = std::size_t{64} << 20;
  // The budget is ignored: the grouping of samples affects the bits of results, and a budget must not.
  network.limit_activations({});
  const PlanOptions options{.number_bytes = sizeof(Real)};
  std::size_t micro_batch = std::clamp<std::size_t>(kLanes / network.positions(), 1, kMostSamples);
  Network exact = network;
  exact.keep_activations(KeptActivations::kExact);
  const Plan plan = make_plan(exact, micro_batch, options);
  if (plan.single_lane && has_large_layer(plan))
    for (std::size_t more = Executor<Real>::kMaxMicroBatch; more >= 4 * micro_batch; more /= 2) {
      const Plan larger = make_plan(exact, more, options);
      if (arena_numbers(larger) + larger.dense_numbers <= 2 * network.dim() &&
          larger.value_numbers * sizeof(Real) <= kArenaBytes)
        return more;
    }
  while (micro_batch > kFewest &&
         make_plan(network, micro_batch, options).value_numbers * sizeof(Real) > kArenaBytes)
    micro_batch /= 2;
  return micro_batch;
}

template <class Real>
std::size_t checked_micro_batch(const Network& network, std::size_t micro_batch) {
  constexpr std::size_t kMost = Executor<Real>::kMaxMicroBatch;
  if (micro_batch > kMost)
    throw std::logic_error("a microbatch of " + std::to_string(micro_batch) + " samples; at most " +
                           std::to_string(kMost));
  return micro_batch == 0 ? choose_micro_batch<Real>(network) : micro_batch;
}

void check_length(const char* what, std::size_t given, std::size_t needed) {
  if (given == needed) return;
  throw std::logic_error("a network of " + std::to_string(needed) + " parameters was given " + what +
                         " of length " + std::to_string(given));
}

// Returns the fewest samples of a block. Computing a block must take long enough to wake a thread for it, and
// much longer than adding its gradient. A gradient larger than the second cache takes longer to add. The
// result depends on the network alone, because blocks affect the bits of results.
template <class Real>
std::size_t choose_block(const Network& network, const Plan& plan) {
  constexpr double kWorthThread = 2e6, kWorthAdding = 256, kWorthAddingLarge = 1024;  // multiply-adds
  constexpr std::size_t kSecondCacheBytes = std::size_t{1} << 20;
  double sample = 0;
  for (const Plan::Step& step : plan.steps) {
    const OpCost cost = cost_of(plan, step);
    sample += static_cast<double>(plan.positions) * (cost.forward + cost.input + cost.parameters);
  }
  const bool large = network.dim() * sizeof(Real) > kSecondCacheBytes;
  const double adding = static_cast<double>(network.dim()) * (large ? kWorthAddingLarge : kWorthAdding);
  return static_cast<std::size_t>(std::ceil(std::max(kWorthThread, adding) / std::max(sample, 1.0)));
}

// The cut of a batch into blocks: whole microbatches, in equal numbers as far as possible.
struct Blocks {
  static constexpr std::size_t kMost = 64;  // more would add more gradients without need

  Blocks(std::size_t samples, std::size_t per_micro_batch, std::size_t fewest)
      : samples(samples),
        micro_batch(per_micro_batch),
        micro_batches((samples + micro_batch - 1) / micro_batch),
        count(rounded(std::min({samples / fewest, micro_batches, kMost}))) {}
  std::size_t first(std::size_t block) const {
    return std::min(samples, micro_batches * block / count * micro_batch);
  }

  // Returns an even number, because most processors have an even number of cores.
  static std::size_t rounded(std::size_t blocks) { return blocks < 2 ? 1 : blocks / 2 * 2; }

  const std::size_t samples, micro_batch, micro_batches, count;
};

}  // namespace

template <class Real>
class Executor<Real>::Impl {
 public:
  // The objects that one block needs while it is computed.
  struct Worker {
    Worker(const Network& network, Plan plan, const Kernels<Real>& kernels, std::span<std::byte> arena)
        : micro_batch(network, std::move(plan), kernels, arena) {}

    MicroBatch<Real> micro_batch;
    std::unique_ptr<MicroBatch<Real>> clipping;  // has a plan of its own
    BackwardPass pass;
    std::vector<Real> gradients;  // the gradients of one block, until they are added
    std::vector<Real> output;     // output of one sample
    std::array<double, 2> sums{};
    bool done = false;
  };
  // The gradients that a computation writes, at most two.
  using Targets = std::array<Real*, 2>;
  struct Block {
    std::size_t first, end;  // samples
    Targets to;              // the block's gradients; `add` is false for its first microbatch
  };

  Impl(const Network& network, std::size_t micro_batch, const Kernels<Real>& kernels,
       std::span<std::byte> arena)
      : network_(network), size_(micro_batch), kernels_(kernels) {
    Plan plan = plan_of(false);
    block_ = choose_block<Real>(network_, plan);
    workers_.push_back(std::make_unique<Worker>(network_, std::move(plan), kernels_, arena));
    workers_[0]->output.resize(output_numbers());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Plan plan_of(bool keep_gradients) const {
    return make_plan(network_, size_, {.number_bytes = sizeof(Real), .keep_gradients = keep_gradients});
  }
  const Plan& plan() const { return workers_[0]->micro_batch.plan(); }
  std::size_t output_numbers() const {
    return network_.positions() * network_.content().nodes[network_.content().ops.back().in[0]].size();
  }
  MicroBatch<Real>& clipping(Worker& worker) const {
    if (worker.clipping == nullptr)
      worker.clipping = std::make_unique<MicroBatch<Real>>(network_, plan_of(true), kernels_);
    return *worker.clipping;
  }

  // Calls pass(first) for each microbatch of `size` samples, of the samples first .. end - 1, until it
  // returns false.
  template <class Pass>
  bool for_micro_batches(MicroBatch<Real>& micro_batch, std::size_t size, std::size_t first, std::size_t end,
                         const ExampleAt& example, Pass&& pass) const {
    for (; first < end; first += micro_batch.samples()) {
      micro_batch.clear();
      while (micro_batch.samples() < size && first + micro_batch.samples() < end)
        micro_batch.push(example(first + micro_batch.samples()));
      if (!pass(first)) return false;
    }
    return true;
  }

  // Runs the blocks of `count` samples and adds up their sums and gradients in ascending order.
  // run(worker, block) adds to worker.sums, writes block.to, and returns false if it was stopped. Then this
  // returns nullopt. Blocks run at the same time as far as there are threads, which changes no bit.
  template <class Run>
  std::optional<std::array<double, 2>> for_blocks(std::size_t count, const Targets& targets, Run&& run) {
    if (count == 0) throw std::logic_error("a network was run over no samples");
    const Blocks blocks(count, size_, block_);
    const std::size_t together = std::min<std::size_t>(std::max(1u, sharing_.threads), blocks.count);
    make_workers(together, blocks.count > 1 ? targets : Targets{});
    std::array<double, 2> total{};
    for (std::size_t next = 0; next < blocks.count; next += together) {
      const std::size_t running = std::min(together, blocks.count - next);
      for_each(running, [&](std::size_t i) {
        Worker& worker = *workers_[i];
        worker.sums = {};
        const std::size_t b = next + i;
        worker.done =
            run(worker, Block{blocks.first(b), blocks.first(b + 1), b == 0 ? targets : own(worker, targets)});
      });
      for (std::size_t i = 0; i < running; ++i) {
        if (!workers_[i]->done) return std::nullopt;
        for (std::size_t k = 0; k < total.size(); ++k) total[k] += workers_[i]->sums[k];
      }
      add_gradients(next == 0 ? 1 : 0, running, targets);
    }
    return total;
  }
  std::size_t blocks(std::size_t count) const { return Blocks(count, size_, block_).count; }
  // Works like for_blocks() with a run that cannot stop.
  template <class Run>
  std::array<double, 2> sum_blocks(std::size_t count, const Targets& targets, Run&& run) {
    return *for_blocks(count, targets, [&](Worker& worker, const Block& block) {
      run(worker, block);
      return true;
    });
  }

  const Network network_;
  const std::size_t size_;  // samples of a microbatch
  const Kernels<Real>& kernels_;
  std::size_t block_ = 1;  // fewest samples of a block
  WorkSharing sharing_;
  std::vector<std::unique_ptr<Worker>> workers_;  // at least one
  std::vector<Real> gradient_;                    // for descend() over several microbatches

 private:
  template <class Body>
  void for_each(std::size_t items, const Body& body) const {
    if (items > 1 && sharing_.for_each)
      return sharing_.for_each(items, std::cref(body));  // allocates nothing
    for (std::size_t i = 0; i < items; ++i) body(i);
  }
  // Makes the missing workers, and their memory for the gradients of blocks.
  void make_workers(std::size_t count, const Targets& targets) {
    while (workers_.size() < count) {
      workers_.push_back(
          std::make_unique<Worker>(network_, plan_of(false), kernels_, std::span<std::byte>()));
      workers_.back()->output.resize(output_numbers());
    }
    const auto gradients =
        static_cast<std::size_t>(std::ranges::count_if(targets, [](const Real* p) { return p != nullptr; }));
    for (std::size_t i = 0; i < count; ++i)
      if (workers_[i]->gradients.size() < gradients * network_.dim())
        workers_[i]->gradients.resize(gradients * network_.dim());
  }
  Targets own(Worker& worker, const Targets& targets) const {
    Targets own{};
    for (std::size_t k = 0; k < targets.size(); ++k)
      if (targets[k] != nullptr) own[k] = worker.gradients.data() + k * network_.dim();
    return own;
  }
  // Adds the gradients of the workers first .. end - 1 to the targets, in this order.
  void add_gradients(std::size_t first, std::size_t end, const Targets& targets) {
    if (first >= end || targets[0] == nullptr) return;
    constexpr std::size_t kRange = std::size_t{1} << 14;
    const std::size_t d = network_.dim();
    for_each((d + kRange - 1) / kRange, [&](std::size_t range) {
      const std::size_t low = range * kRange, high = std::min(d, low + kRange);
      for (std::size_t k = 0; k < targets.size() && targets[k] != nullptr; ++k)
        for (std::size_t i = first; i < end; ++i) {
          const Real* __restrict from = workers_[i]->gradients.data() + k * d;
          Real* __restrict to = targets[k];
          for (std::size_t j = low; j < high; ++j) to[j] += from[j];
        }
    });
  }
};

template <class Real>
Executor<Real>::Executor(const Network& network, std::size_t micro_batch, const Kernels<Real>* kernels)
    : Executor(network, std::span<std::byte>(), micro_batch, kernels) {}

template <class Real>
Executor<Real>::Executor(const Network& network, std::span<std::byte> arena, std::size_t micro_batch,
                         const Kernels<Real>* kernels)
    : impl_(std::make_unique<Impl>(network, checked_micro_batch<Real>(network, micro_batch),
                                   kernels == nullptr ? kernels_of<Real>(KernelSet::kBest) : *kernels,
                                   arena)) {}

template <class Real>
std::size_t Executor<Real>::arena_bytes_of(const Network& network, std::size_t micro_batch) {
  return MicroBatch<Real>::arena_bytes(
      make_plan(network, checked_micro_batch<Real>(network, micro_batch), {.number_bytes = sizeof(Real)}));
}

template <class Real>
Executor<Real>::~Executor() = default;
template <class Real>
Executor<Real>::Executor(Executor&&) noexcept = default;
template <class Real>
Executor<Real>& Executor<Real>::operator=(Executor&&) noexcept = default;

template <class Real>
std::size_t Executor<Real>::blocks(std::size_t count) const {
  return impl_->blocks(count);
}

template <class Real>
void Executor<Real>::share_work(const WorkSharing& sharing) {
  impl_->sharing_ = sharing;
}

template <class Real>
double Executor<Real>::loss_and_gradient(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                                         std::span<Real> gradient) {
  return *compute(x, count, example, gradient, {});
}

template <class Real>
std::optional<double> Executor<Real>::compute(std::span<const Real> x, std::size_t count,
                                              const ExampleAt& example, std::span<Real> gradient,
                                              const GradientOptions& options) {
  check_length("a point", x.size(), dim());
  check_length("a gradient", gradient.size(), dim());
  check_options(options, dim());
  const Real seed = Real(1) / static_cast<Real>(count);
  // With one block, ranges are final during its last backward pass. With several, all are after the last sum.
  const bool single = blocks(count) == 1;
  GradientOptions of_block;
  if (!single)
    of_block = {.wanted = options.wanted, .stop = options.stop, .finished = {}, .paths = options.paths};
  // Each microbatch draws its own paths. Larger ones would draw fewer, and the variance would grow.
  const std::size_t size = options.paths.share < 1 ? std::min(impl_->size_, kMostSamples) : impl_->size_;
  const auto sums = impl_->for_blocks(count, {gradient.data()}, [&](auto& worker, const auto& block) {
    worker.pass.plan(worker.micro_batch.plan(), single ? options : of_block);
    return impl_->for_micro_batches(
        worker.micro_batch, size, block.first, block.end, example, [&](std::size_t first) {
          if (stopped(options.stop)) return false;
          const std::optional<double> sum = worker.micro_batch.forward(x.data(), seed, options.stop);
          if (!sum) return false;
          worker.sums[0] += *sum;
          worker.pass.micro_batch = first / size;
          worker.pass.last_micro_batch = first + worker.micro_batch.samples() == block.end;
          return worker.micro_batch.backward(x.data(), block.to[0], first > block.first, worker.pass);
        });
  });
  if (!sums) return std::nullopt;
  if (options.finished && !single) options.finished({0, dim()});
  return (*sums)[0] / static_cast<double>(count);
}

template <class Real>
double Executor<Real>::cost(const Coordinates& wanted) const {
  wanted.check(dim());
  const GradientOptions options{.wanted = wanted};
  BackwardPass pass;
  pass.plan(impl_->plan(), options);
  return backward_cost(impl_->plan(), pass);
}

template <class Real>
TwoLosses<double> Executor<Real>::two_gradients(std::span<const Real> x, std::span<const Real> y,
                                                std::size_t count, const ExampleAt& example,
                                                std::span<Real> at_x, std::span<Real> at_y) {
  for (const std::size_t length : {x.size(), y.size()}) check_length("a point", length, dim());
  for (const std::size_t length : {at_x.size(), at_y.size()}) check_length("a gradient", length, dim());
  const Real seed = Real(1) / static_cast<Real>(count);
  const auto sums =
      impl_->sum_blocks(count, {at_x.data(), at_y.data()}, [&](auto& worker, const auto& block) {
        impl_->for_micro_batches(worker.micro_batch, impl_->size_, block.first, block.end, example,
                                 [&](std::size_t first) {
                                   const bool add = first > block.first;
                                   worker.sums[0] += worker.micro_batch.forward(x.data(), seed);
                                   worker.micro_batch.backward(x.data(), block.to[0], add);
                                   worker.sums[1] += worker.micro_batch.forward(y.data(), seed);
                                   worker.micro_batch.backward(y.data(), block.to[1], add);
                                   return true;
                                 });
      });
  return {sums[0] / static_cast<double>(count), sums[1] / static_cast<double>(count)};
}

template <class Real>
Directional<double> Executor<Real>::directional(std::span<const Real> x, std::span<const Real> v,
                                                std::size_t count, const ExampleAt& example) {
  check_length("a point", x.size(), dim());
  check_length("a direction", v.size(), dim());
  const auto sums = impl_->sum_blocks(count, {}, [&](auto& worker, const auto& block) {
    impl_->for_micro_batches(worker.micro_batch, impl_->size_, block.first, block.end, example,
                             [&](std::size_t) {
                               const auto part = worker.micro_batch.directional(x.data(), v.data());
                               worker.sums[0] += part.loss;
                               worker.sums[1] += part.derivative;
                               return true;
                             });
  });
  return {sums[0] / static_cast<double>(count), sums[1] / static_cast<double>(count)};
}

template <class Real>
bool Executor<Real>::knows_sample_norms() const {
  return impl_->network_.activation_budget().is_none() && has_sample_norms(impl_->plan());
}

template <class Real>
double Executor<Real>::scaled_gradients(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                                        const std::function<double(double square)>& factor,
                                        std::span<Real> gradient) {
  check_length("a point", x.size(), dim());
  check_length("a gradient", gradient.size(), dim());
  if (!knows_sample_norms())
    throw std::logic_error("this network cannot compute norms of its samples' gradients");
  const double share = 1 / static_cast<double>(count);
  const auto sums = impl_->sum_blocks(count, {gradient.data()}, [&](auto& worker, const auto& block) {
    MicroBatch<Real>& micro_batch = impl_->clipping(worker);
    impl_->for_micro_batches(micro_batch, impl_->size_, block.first, block.end, example,
                             [&](std::size_t first) {
                               worker.sums[0] += micro_batch.clipped(
                                   x.data(), [&](double square) { return share * factor(square); },
                                   block.to[0], first > block.first);
                               return true;
                             });
  });
  return sums[0] * share;
}

template <class Real>
double Executor<Real>::descend(std::span<Real> x, std::size_t count, const ExampleAt& example, Real step) {
  check_length("a point", x.size(), dim());
  if (count > 0 && count <= impl_->size_ && !impl_->plan().shared_parameters) {
    const Real seed = -step / static_cast<Real>(count);
    MicroBatch<Real>& micro_batch = impl_->workers_[0]->micro_batch;
    double loss = 0;
    impl_->for_micro_batches(micro_batch, impl_->size_, 0, count, example, [&](std::size_t) {
      loss = micro_batch.forward(x.data(), seed);
      micro_batch.backward(x.data(), x.data(), true);
      return true;
    });
    return loss / static_cast<double>(count);
  }
  impl_->gradient_.resize(dim());
  const double loss = loss_and_gradient(x, count, example, impl_->gradient_);
  impl_->kernels_.axpy(static_cast<Index>(dim()), -step, impl_->gradient_.data(), x.data());
  return loss;
}

template <class Real>
double Executor<Real>::loss(std::span<const Real> x, std::size_t count, const ExampleAt& example) {
  check_length("a point", x.size(), dim());
  const Real seed = Real(1) / static_cast<Real>(count);
  const auto sums = impl_->sum_blocks(count, {}, [&](auto& worker, const auto& block) {
    impl_->for_micro_batches(worker.micro_batch, impl_->size_, block.first, block.end, example,
                             [&](std::size_t) {
                               worker.sums[0] += worker.micro_batch.forward(x.data(), seed);
                               return true;
                             });
  });
  return sums[0] / static_cast<double>(count);
}

template <class Real>
void Executor<Real>::outputs(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                             const TakeOutputs& take) {
  check_length("a point", x.size(), dim());
  const Real seed = Real(1) / static_cast<Real>(count);
  impl_->sum_blocks(count, {}, [&](auto& worker, const auto& block) {
    MicroBatch<Real>& micro_batch = worker.micro_batch;
    impl_->for_micro_batches(micro_batch, impl_->size_, block.first, block.end, example,
                             [&](std::size_t first) {
                               micro_batch.forward(x.data(), seed);
                               for (std::size_t s = 0; s < micro_batch.samples(); ++s) {
                                 micro_batch.copy_outputs(s, worker.output);
                                 take(first + s, worker.output);
                               }
                               return true;
                             });
  });
}

template <class Real>
std::size_t Executor<Real>::dim() const {
  return impl_->network_.dim();
}
template <class Real>
std::size_t Executor<Real>::positions() const {
  return impl_->network_.positions();
}
template <class Real>
std::size_t Executor<Real>::output_channels() const {
  return impl_->network_.content().nodes[impl_->network_.content().ops.back().in[0]].size();
}
template <class Real>
std::size_t Executor<Real>::micro_batch() const {
  return impl_->size_;
}
template <class Real>
std::size_t Executor<Real>::arena_bytes() const {
  return impl_->workers_[0]->micro_batch.arena_bytes();
}
template <class Real>
const Kernels<Real>& Executor<Real>::kernels() const {
  return impl_->kernels_;
}

template class Executor<float>;
template class Executor<double>;

}  // namespace gradwire
