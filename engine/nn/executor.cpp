#include "engine/nn/executor.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/kernels/select.h"
#include "engine/nn/micro_batch.h"

namespace gradwire {
namespace {

// Returns the number of samples that gives enough lanes for the widest tiles. It is larger if a sample has
// few positions, and smaller if the samples would take much memory. Four samples still fill the narrowest
// registers.
template <class Real>
std::size_t choose_micro_batch(Network network) {
  constexpr std::size_t kLanes = 32, kFewest = 4, kArenaBytes = std::size_t{64} << 20;
  // The budget is ignored: the grouping of samples affects the bits of results, and a budget must not.
  network.limit_activations({});
  const PlanOptions options{.number_bytes = sizeof(Real)};
  std::size_t micro_batch = std::clamp<std::size_t>(kLanes / network.positions(), 1, MicroBatch<Real>::kMost);
  while (micro_batch > kFewest &&
         make_plan(network, micro_batch, options).value_numbers * sizeof(Real) > kArenaBytes)
    micro_batch /= 2;
  return micro_batch;
}

template <class Real>
std::size_t checked_micro_batch(const Network& network, std::size_t micro_batch) {
  if (micro_batch > MicroBatch<Real>::kMost)
    throw std::logic_error("a microbatch of " + std::to_string(micro_batch) + " samples; at most " +
                           std::to_string(MicroBatch<Real>::kMost));
  return micro_batch == 0 ? choose_micro_batch<Real>(network) : micro_batch;
}

void check_length(const char* what, std::size_t given, std::size_t needed) {
  if (given == needed) return;
  throw std::logic_error("a network of " + std::to_string(needed) + " parameters was given " + what +
                         " of length " + std::to_string(given));
}

}  // namespace

template <class Real>
class Executor<Real>::Impl {
 public:
  Impl(const Network& network, std::size_t micro_batch, const Kernels<Real>& kernels,
       std::span<std::byte> arena)
      : network_(network),
        size_(micro_batch),
        kernels_(kernels),
        micro_batch_(network_, make_plan(network_, micro_batch, {.number_bytes = sizeof(Real)}), kernels,
                     arena) {
    output_.resize(network_.positions() * network_.nodes()[network_.ops().back().in[0]].size());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Calls pass() for each microbatch.
  template <class Pass>
  static void for_micro_batches(MicroBatch<Real>& micro_batch, std::size_t size, std::size_t count,
                                const ExampleAt& example, Pass&& pass) {
    if (count == 0) throw std::logic_error("a network was run over no samples");
    for (std::size_t first = 0; first < count; first += micro_batch.samples()) {
      micro_batch.clear();
      while (micro_batch.samples() < size && first + micro_batch.samples() < count)
        micro_batch.push(example(first + micro_batch.samples()));
      if (!pass(first)) return;
    }
  }

  // Returns the microbatch for the gradients of single samples. It has its own plan. The first call makes it.
  MicroBatch<Real>& clipping_micro_batch() {
    if (clipping_ == nullptr)
      clipping_ = std::make_unique<MicroBatch<Real>>(
          network_, make_plan(network_, size_, {.number_bytes = sizeof(Real), .keep_gradients = true}),
          kernels_);
    return *clipping_;
  }

  // Calls pass() for each microbatch, and returns the mean loss.
  template <class Pass>
  double run(const Real* x, std::size_t count, const ExampleAt& example, Pass&& pass) {
    if (count == 0) throw std::logic_error("a network was run over no samples");
    const Real seed = Real(1) / static_cast<Real>(count);
    return run_weighted(x, count, example, seed, pass) / static_cast<double>(count);
  }

  template <class Pass>
  double run_weighted(const Real* x, std::size_t count, const ExampleAt& example, Real seed, Pass&& pass) {
    double loss = 0;
    for (std::size_t first = 0; first < count;) {
      micro_batch_.clear();
      while (micro_batch_.samples() < size_ && first + micro_batch_.samples() < count)
        micro_batch_.push(example(first + micro_batch_.samples()));
      loss += micro_batch_.forward(x, seed);
      pass(first);
      first += micro_batch_.samples();
    }
    return loss;
  }

  const Network network_;
  const std::size_t size_;
  const Kernels<Real>& kernels_;
  MicroBatch<Real> micro_batch_;
  BackwardPass pass_;
  std::unique_ptr<MicroBatch<Real>> clipping_;
  std::vector<Real> gradient_;  // for descend() over several microbatches
  std::vector<Real> output_;    // output of one sample
};

template <class Real>
Executor<Real>::Executor(const Network& network, std::size_t micro_batch, const Kernels<Real>* kernels)
    : Executor(network, std::span<std::byte>(), micro_batch, kernels) {}

template <class Real>
Executor<Real>::Executor(const Network& network, std::span<std::byte> arena, std::size_t micro_batch,
                         const Kernels<Real>* kernels)
    : impl_(std::make_unique<Impl>(network, checked_micro_batch<Real>(network, micro_batch),
                                   kernels == nullptr ? best_kernels<Real>() : *kernels, arena)) {}

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
double Executor<Real>::loss_and_gradient(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                                         std::span<Real> gradient) {
  check_length("a point", x.size(), dim());
  check_length("a gradient", gradient.size(), dim());
  return impl_->run(x.data(), count, example, [&](std::size_t first) {
    impl_->micro_batch_.backward(x.data(), gradient.data(), first > 0);
  });
}

template <class Real>
std::optional<double> Executor<Real>::compute(std::span<const Real> x, std::size_t count,
                                              const ExampleAt& example, std::span<Real> gradient,
                                              const GradientOptions& options) {
  check_length("a point", x.size(), dim());
  check_length("a gradient", gradient.size(), dim());
  check_options(options, dim());
  MicroBatch<Real>& micro_batch = impl_->micro_batch_;
  BackwardPass& pass = impl_->pass_;
  pass.plan(micro_batch.plan(), options);
  const Real seed = Real(1) / static_cast<Real>(count);
  double loss = 0;
  bool done = false;
  pass.micro_batch = 0;
  Impl::for_micro_batches(micro_batch, impl_->size_, count, example, [&](std::size_t first) {
    if (stopped(options.stop)) return false;
    const std::optional<double> sum = micro_batch.forward(x.data(), seed, options.stop);
    if (!sum) return false;
    loss += *sum;
    pass.last_micro_batch = first + micro_batch.samples() == count;
    if (!micro_batch.backward(x.data(), gradient.data(), first > 0, pass)) return false;
    ++pass.micro_batch;
    done = pass.last_micro_batch;
    return true;
  });
  if (!done) return std::nullopt;
  return loss / static_cast<double>(count);
}

template <class Real>
double Executor<Real>::cost(const Coordinates& wanted) const {
  wanted.check(dim());
  const GradientOptions options{.wanted = wanted};
  BackwardPass pass;
  pass.plan(impl_->micro_batch_.plan(), options);
  return backward_cost(impl_->micro_batch_.plan(), pass);
}

template <class Real>
TwoLosses<double> Executor<Real>::two_gradients(std::span<const Real> x, std::span<const Real> y,
                                                std::size_t count, const ExampleAt& example,
                                                std::span<Real> at_x, std::span<Real> at_y) {
  for (const std::size_t length : {x.size(), y.size()}) check_length("a point", length, dim());
  for (const std::size_t length : {at_x.size(), at_y.size()}) check_length("a gradient", length, dim());
  const Real seed = Real(1) / static_cast<Real>(count);
  TwoLosses<double> loss{0, 0};
  MicroBatch<Real>& micro_batch = impl_->micro_batch_;
  Impl::for_micro_batches(micro_batch, impl_->size_, count, example, [&](std::size_t first) {
    loss.x += micro_batch.forward(x.data(), seed);
    micro_batch.backward(x.data(), at_x.data(), first > 0);
    loss.y += micro_batch.forward(y.data(), seed);
    micro_batch.backward(y.data(), at_y.data(), first > 0);
    return true;
  });
  return {loss.x / static_cast<double>(count), loss.y / static_cast<double>(count)};
}

template <class Real>
Directional<double> Executor<Real>::directional(std::span<const Real> x, std::span<const Real> v,
                                                std::size_t count, const ExampleAt& example) {
  check_length("a point", x.size(), dim());
  check_length("a direction", v.size(), dim());
  Directional<double> sum{0, 0};
  Impl::for_micro_batches(impl_->micro_batch_, impl_->size_, count, example, [&](std::size_t) {
    const auto part = impl_->micro_batch_.directional(x.data(), v.data());
    sum.loss += part.loss;
    sum.derivative += part.derivative;
    return true;
  });
  return {sum.loss / static_cast<double>(count), sum.derivative / static_cast<double>(count)};
}

template <class Real>
bool Executor<Real>::knows_sample_norms() const {
  return impl_->network_.activation_budget().is_none() && has_sample_norms(impl_->micro_batch_.plan());
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
  double loss = 0;
  MicroBatch<Real>& micro_batch = impl_->clipping_micro_batch();
  Impl::for_micro_batches(micro_batch, impl_->size_, count, example, [&](std::size_t first) {
    loss += micro_batch.clipped(
        x.data(), [&](double square) { return share * factor(square); }, gradient.data(), first > 0);
    return true;
  });
  return loss * share;
}

template <class Real>
double Executor<Real>::descend(std::span<Real> x, std::size_t count, const ExampleAt& example, Real step) {
  check_length("a point", x.size(), dim());
  if (count > 0 && count <= impl_->size_ && !impl_->micro_batch_.plan().shared_parameters) {
    const Real seed = -step / static_cast<Real>(count);
    return impl_->run_weighted(x.data(), count, example, seed, [&](std::size_t) {
      impl_->micro_batch_.backward(x.data(), x.data(), true);
    }) / static_cast<double>(count);
  }
  impl_->gradient_.resize(dim());
  const double loss = loss_and_gradient(x, count, example, impl_->gradient_);
  impl_->kernels_.axpy(static_cast<Index>(dim()), -step, impl_->gradient_.data(), x.data());
  return loss;
}

template <class Real>
double Executor<Real>::loss(std::span<const Real> x, std::size_t count, const ExampleAt& example) {
  check_length("a point", x.size(), dim());
  return impl_->run(x.data(), count, example, [](std::size_t) {});
}

template <class Real>
void Executor<Real>::outputs(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                             const TakeOutputs& take) {
  check_length("a point", x.size(), dim());
  impl_->run(x.data(), count, example, [&](std::size_t first) {
    for (std::size_t s = 0; s < impl_->micro_batch_.samples(); ++s) {
      impl_->micro_batch_.copy_outputs(s, impl_->output_);
      take(first + s, impl_->output_);
    }
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
  return impl_->network_.nodes()[impl_->network_.ops().back().in[0]].size();
}
template <class Real>
std::size_t Executor<Real>::micro_batch() const {
  return impl_->size_;
}
template <class Real>
std::size_t Executor<Real>::arena_bytes() const {
  return impl_->micro_batch_.arena_bytes();
}
template <class Real>
const Kernels<Real>& Executor<Real>::kernels() const {
  return impl_->kernels_;
}

template class Executor<float>;
template class Executor<double>;

}  // namespace gradwire
