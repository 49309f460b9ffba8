#include "engine/nn/runner.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/kernels/select.h"
#include "engine/nn/block.h"

namespace gradwire {
namespace {

// Enough lanes for the widest tiles; more samples only where one sample has few positions, and fewer where
// they would take much memory: four still fill the narrowest registers.
template <class Real>
std::size_t choose_block(Network network) {
  constexpr std::size_t kLanes = 32, kFewest = 4, kArenaBytes = std::size_t{64} << 20;
  network.limit_activations({});  // it changes no bit, so it does not change how samples are grouped
  const PlanTerms terms{.number_bytes = sizeof(Real)};
  std::size_t block = std::clamp<std::size_t>(kLanes / network.positions(), 1, Block<Real>::kMost);
  while (block > kFewest && make_plan(network, block, terms).value_numbers * sizeof(Real) > kArenaBytes)
    block /= 2;
  return block;
}

template <class Real>
std::size_t checked_block(const Network& network, std::size_t block) {
  if (block > Block<Real>::kMost)
    throw std::logic_error("a block of " + std::to_string(block) + " samples; at most " +
                           std::to_string(Block<Real>::kMost));
  return block == 0 ? choose_block<Real>(network) : block;
}

void check_length(const char* what, std::size_t given, std::size_t needed) {
  if (given == needed) return;
  throw std::logic_error("a network of " + std::to_string(needed) + " parameters was given " + what +
                         " of length " + std::to_string(given));
}

}  // namespace

template <class Real>
class Runner<Real>::Impl {
 public:
  Impl(const Network& network, std::size_t block, const Kernels<Real>& kernels, std::span<std::byte> arena)
      : network_(network),
        size_(block),
        kernels_(kernels),
        block_(network_, make_plan(network_, block, {.number_bytes = sizeof(Real)}), kernels, arena) {
    output_.resize(network_.positions() * network_.nodes()[network_.ops().back().in[0]].size());
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Calls pass() for each block of samples.
  template <class Pass>
  static void for_blocks(Block<Real>& block, std::size_t size, std::size_t count, const ExampleAt& example,
                         Pass&& pass) {
    if (count == 0) throw std::logic_error("a network was run over no samples");
    for (std::size_t first = 0; first < count; first += block.samples()) {
      block.clear();
      while (block.samples() < size && first + block.samples() < count)
        block.push(example(first + block.samples()));
      if (!pass(first)) return;
    }
  }

  // Of gradients by sample: another plan, made when it is asked for.
  Block<Real>& clipping_block() {
    if (clipping_ == nullptr)
      clipping_ = std::make_unique<Block<Real>>(
          network_, make_plan(network_, size_, {.number_bytes = sizeof(Real), .keep_gradients = true}),
          kernels_);
    return *clipping_;
  }

  // Calls pass() for each block of samples, and returns the mean loss.
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
      block_.clear();
      while (block_.samples() < size_ && first + block_.samples() < count)
        block_.push(example(first + block_.samples()));
      loss += block_.forward(x, seed);
      pass(first);
      first += block_.samples();
    }
    return loss;
  }

  const Network network_;
  const std::size_t size_;
  const Kernels<Real>& kernels_;
  Block<Real> block_;
  Sweep sweep_;
  std::unique_ptr<Block<Real>> clipping_;
  std::vector<Real> gradient_;  // of descend() in several blocks
  std::vector<Real> output_;    // of one sample
};

template <class Real>
Runner<Real>::Runner(const Network& network, std::size_t block, const Kernels<Real>* kernels)
    : Runner(network, std::span<std::byte>(), block, kernels) {}

template <class Real>
Runner<Real>::Runner(const Network& network, std::span<std::byte> arena, std::size_t block,
                     const Kernels<Real>* kernels)
    : impl_(std::make_unique<Impl>(network, checked_block<Real>(network, block),
                                   kernels == nullptr ? best_kernels<Real>() : *kernels, arena)) {}

template <class Real>
std::size_t Runner<Real>::arena_bytes_of(const Network& network, std::size_t block) {
  return Block<Real>::arena_bytes(
      make_plan(network, checked_block<Real>(network, block), {.number_bytes = sizeof(Real)}));
}

template <class Real>
Runner<Real>::~Runner() = default;
template <class Real>
Runner<Real>::Runner(Runner&&) noexcept = default;
template <class Real>
Runner<Real>& Runner<Real>::operator=(Runner&&) noexcept = default;

template <class Real>
double Runner<Real>::loss_and_gradient(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                                       std::span<Real> gradient) {
  check_length("a point", x.size(), dim());
  check_length("a gradient", gradient.size(), dim());
  return impl_->run(x.data(), count, example,
                    [&](std::size_t first) { impl_->block_.backward(x.data(), gradient.data(), first > 0); });
}

template <class Real>
std::optional<double> Runner<Real>::compute(std::span<const Real> x, std::size_t count,
                                            const ExampleAt& example, std::span<Real> gradient,
                                            const GradientTerms& terms) {
  check_length("a point", x.size(), dim());
  check_length("a gradient", gradient.size(), dim());
  check_terms(terms, dim());
  Block<Real>& block = impl_->block_;
  Sweep& sweep = impl_->sweep_;
  sweep.plan(block.plan(), terms);
  const Real seed = Real(1) / static_cast<Real>(count);
  double loss = 0;
  bool done = false;
  sweep.block = 0;
  Impl::for_blocks(block, impl_->size_, count, example, [&](std::size_t first) {
    if (stopped(terms.stop)) return false;
    const std::optional<double> sum = block.forward(x.data(), seed, terms.stop);
    if (!sum) return false;
    loss += *sum;
    sweep.last_block = first + block.samples() == count;
    if (!block.backward(x.data(), gradient.data(), first > 0, sweep)) return false;
    ++sweep.block;
    done = sweep.last_block;
    return true;
  });
  if (!done) return std::nullopt;
  return loss / static_cast<double>(count);
}

template <class Real>
double Runner<Real>::cost(const Coordinates& wanted) const {
  wanted.check(dim());
  const GradientTerms terms{.wanted = wanted};
  Sweep sweep;
  sweep.plan(impl_->block_.plan(), terms);
  return sweep_cost(impl_->block_.plan(), sweep);
}

template <class Real>
TwoLosses<double> Runner<Real>::two_gradients(std::span<const Real> x, std::span<const Real> y,
                                              std::size_t count, const ExampleAt& example,
                                              std::span<Real> at_x, std::span<Real> at_y) {
  for (const std::size_t length : {x.size(), y.size()}) check_length("a point", length, dim());
  for (const std::size_t length : {at_x.size(), at_y.size()}) check_length("a gradient", length, dim());
  const Real seed = Real(1) / static_cast<Real>(count);
  TwoLosses<double> loss{0, 0};
  Block<Real>& block = impl_->block_;
  Impl::for_blocks(block, impl_->size_, count, example, [&](std::size_t first) {
    loss.x += block.forward(x.data(), seed);
    block.backward(x.data(), at_x.data(), first > 0);
    loss.y += block.forward(y.data(), seed);
    block.backward(y.data(), at_y.data(), first > 0);
    return true;
  });
  return {loss.x / static_cast<double>(count), loss.y / static_cast<double>(count)};
}

template <class Real>
Directional<double> Runner<Real>::directional(std::span<const Real> x, std::span<const Real> v,
                                              std::size_t count, const ExampleAt& example) {
  check_length("a point", x.size(), dim());
  check_length("a direction", v.size(), dim());
  Directional<double> sum{0, 0};
  Impl::for_blocks(impl_->block_, impl_->size_, count, example, [&](std::size_t) {
    const auto part = impl_->block_.directional(x.data(), v.data());
    sum.loss += part.loss;
    sum.derivative += part.derivative;
    return true;
  });
  return {sum.loss / static_cast<double>(count), sum.derivative / static_cast<double>(count)};
}

template <class Real>
bool Runner<Real>::knows_sample_norms() const {
  return impl_->network_.activation_budget().is_none() && has_sample_norms(impl_->block_.plan());
}

template <class Real>
double Runner<Real>::scaled_gradients(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                                      const std::function<double(double square)>& factor,
                                      std::span<Real> gradient) {
  check_length("a point", x.size(), dim());
  check_length("a gradient", gradient.size(), dim());
  if (!knows_sample_norms()) throw std::logic_error("this network has no closed form of its samples' norms");
  const double share = 1 / static_cast<double>(count);
  double loss = 0;
  Block<Real>& block = impl_->clipping_block();
  Impl::for_blocks(block, impl_->size_, count, example, [&](std::size_t first) {
    loss += block.clipped(
        x.data(), [&](double square) { return share * factor(square); }, gradient.data(), first > 0);
    return true;
  });
  return loss * share;
}

template <class Real>
double Runner<Real>::descend(std::span<Real> x, std::size_t count, const ExampleAt& example, Real step) {
  check_length("a point", x.size(), dim());
  if (count > 0 && count <= impl_->size_ && !impl_->block_.plan().shared_parameters) {
    const Real seed = -step / static_cast<Real>(count);
    return impl_->run_weighted(x.data(), count, example, seed, [&](std::size_t) {
      impl_->block_.backward(x.data(), x.data(), true);
    }) / static_cast<double>(count);
  }
  impl_->gradient_.resize(dim());
  const double loss = loss_and_gradient(x, count, example, impl_->gradient_);
  impl_->kernels_.axpy(static_cast<Index>(dim()), -step, impl_->gradient_.data(), x.data());
  return loss;
}

template <class Real>
double Runner<Real>::loss(std::span<const Real> x, std::size_t count, const ExampleAt& example) {
  check_length("a point", x.size(), dim());
  return impl_->run(x.data(), count, example, [](std::size_t) {});
}

template <class Real>
void Runner<Real>::outputs(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                           const TakeOutputs& take) {
  check_length("a point", x.size(), dim());
  impl_->run(x.data(), count, example, [&](std::size_t first) {
    for (std::size_t s = 0; s < impl_->block_.samples(); ++s) {
      impl_->block_.copy_outputs(s, impl_->output_);
      take(first + s, impl_->output_);
    }
  });
}

template <class Real>
std::size_t Runner<Real>::dim() const {
  return impl_->network_.dim();
}
template <class Real>
std::size_t Runner<Real>::positions() const {
  return impl_->network_.positions();
}
template <class Real>
std::size_t Runner<Real>::output_channels() const {
  return impl_->network_.nodes()[impl_->network_.ops().back().in[0]].size();
}
template <class Real>
std::size_t Runner<Real>::block() const {
  return impl_->size_;
}
template <class Real>
std::size_t Runner<Real>::arena_bytes() const {
  return impl_->block_.arena_bytes();
}
template <class Real>
const Kernels<Real>& Runner<Real>::kernels() const {
  return impl_->kernels_;
}

template class Runner<float>;
template class Runner<double>;

}  // namespace gradwire
