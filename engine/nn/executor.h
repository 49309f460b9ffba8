// Runs a network: losses, gradients and outputs for any number of samples, in microbatches that fill the
// processor's vectors. Batches of any size need only the memory of one microbatch, which has at most
// kMaxMicroBatch samples. Uses the best kernels (engine/kernels/select.h) unless the caller passes others.
//
// A large batch is cut into blocks of consecutive samples, which threads can compute at the same time
// (share_work). The sums and gradients of blocks are added in ascending order. The cut depends on the network
// and the number of samples, not on the threads.
//
// After construction a call allocates only if its comment says so. In addition, the first call over several
// blocks allocates the gradient of a block, and with share_work() a microbatch and such a gradient for each
// thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "engine/kernels/kernels.h"
#include "engine/nn/example.h"
#include "gradwire/network.h"
#include "gradwire/oracle.h"

namespace gradwire {

template <class Real>
class Executor {
 public:
  static constexpr std::size_t kMaxMicroBatch = 256;

  // `micro_batch` is the number of samples per pass, at most kMaxMicroBatch; 0 chooses it from the positions,
  // the largest layer and the memory of the network. Throws std::logic_error if the network has no loss, and
  // BudgetTooSmall (gradwire/network.h).
  explicit Executor(const Network& network, std::size_t micro_batch = 0,
                    const Kernels<Real>* kernels = nullptr);
  // Uses the caller's memory as arena: at least arena_bytes_of(network, micro_batch) bytes at any address. It
  // must outlive the executor. The executor allocates other memory itself: a description of the network, some
  // KB per layer, and what calls allocate later. Throws std::logic_error if `arena` is too small.
  Executor(const Network& network, std::span<std::byte> arena, std::size_t micro_batch = 0,
           const Kernels<Real>* kernels = nullptr);
  static std::size_t arena_bytes_of(const Network& network, std::size_t micro_batch = 0);
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  // Returns the number of blocks of a batch of `count` samples, at least 1.
  std::size_t blocks(std::size_t count) const;
  // Lets later calls use these threads. No bit of a result changes.
  void share_work(const WorkSharing& sharing);

  // A function that returns sample k of a call, 0 <= k < count. It is called once or several times for each
  // k, in ascending order within a block. With share_work() several threads call it at the same time.
  using ExampleAt = std::function<Example<Real>(std::size_t k)>;

  // Returns the mean loss over the samples and writes its gradient to `gradient`, shape (dim()). Keeps
  // neither span. Throws DataError if a token, label, feature number or length does not fit the network.
  double loss_and_gradient(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                           std::span<Real> gradient);

  // Does the same with options (gradwire/oracle.h). Returns nullopt if it was stopped. The first call that
  // does not want all coordinates allocates a list of what the wanted ones need.
  std::optional<double> compute(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                                std::span<Real> gradient, const GradientOptions& options);

  // Returns the time of compute() for these coordinates, as a share of the time of the whole gradient.
  // Allocates.
  double cost(const Coordinates& wanted) const;

  // Computes mean losses and their gradients at x and at y, microbatch by microbatch. The bits equal those of
  // two calls.
  TwoLosses<double> two_gradients(std::span<const Real> x, std::span<const Real> y, std::size_t count,
                                  const ExampleAt& example, std::span<Real> at_x, std::span<Real> at_y);

  // Returns the mean loss and its derivative in the direction v, by forward mode. The first call allocates as
  // many numbers as the values take.
  Directional<double> directional(std::span<const Real> x, std::span<const Real> v, std::size_t count,
                                  const ExampleAt& example);

  // Writes the mean of the samples' gradients, each times factor(its squared norm). Returns the mean loss.
  // The first call allocates a second arena, even if the first one is the caller's. REQUIRES:
  // knows_sample_norms().
  double scaled_gradients(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                          const std::function<double(double square)>& factor, std::span<Real> gradient);
  // Returns false for networks with convolutions, parameters that are read twice, or many positions. Also
  // returns false with an activation budget, because norms need the gradients of all values at once.
  bool knows_sample_norms() const;

  // Does x -= step * gradient of the mean loss. Returns the loss before the step. If the samples fit one
  // microbatch and no parameter is read by two operations, each operation updates its parameters right after
  // it reads them. Otherwise the first such call allocates a gradient array, which the executor keeps.
  double descend(std::span<Real> x, std::size_t count, const ExampleAt& example, Real step);

  // Returns the mean loss alone.
  double loss(std::span<const Real> x, std::size_t count, const ExampleAt& example);

  // Calls take(k, outputs) for each sample k. `outputs` is the input of the loss, shape (positions,
  // channels). With share_work() several threads call it at the same time.
  using TakeOutputs = std::function<void(std::size_t k, std::span<const Real> outputs)>;
  void outputs(std::span<const Real> x, std::size_t count, const ExampleAt& example, const TakeOutputs& take);

  std::size_t dim() const;
  std::size_t positions() const;
  std::size_t output_channels() const;
  std::size_t micro_batch() const;  // samples per pass
  std::size_t arena_bytes() const;  // memory of activations, their gradients and scratch
  const Kernels<Real>& kernels() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

extern template class Executor<float>;
extern template class Executor<double>;

}  // namespace gradwire
