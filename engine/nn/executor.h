// Runs a network: losses, gradients and outputs for any number of samples, in blocks that fit the processor's
// vectors. Memory is that of one block of at most kMaxBlock samples, whatever the batch; after construction
// nothing is allocated but where it is said: by the first call of some, and by cost(). Kernels are those of
// engine/kernels/select.h unless others are given.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "engine/kernels/kernels.h"
#include "engine/nn/example.h"
#include "engine/nn/network.h"
#include "engine/oracle.h"

namespace gradwire {

template <class Real>
class Executor {
 public:
  static constexpr std::size_t kMaxBlock = 16;

  // `micro_batch`: samples per pass, at most kMaxBlock; 0: chosen from positions, widths and vector length.
  // Throws std::logic_error when the network has no loss, BudgetTooSmall (engine/nn/network.h).
  explicit Executor(const Network& network, std::size_t micro_batch = 0,
                    const Kernels<Real>* kernels = nullptr);
  // The arena lies in `arena` of the caller, of arena_bytes_of(network, block) at least; any address. It must
  // outlive the executor. What the executor knows of the network, some KB for each layer, and what is
  // allocated later lie in memory of its own. Throws std::logic_error for a smaller one.
  Executor(const Network& network, std::span<std::byte> arena, std::size_t micro_batch = 0,
           const Kernels<Real>* kernels = nullptr);
  static std::size_t arena_bytes_of(const Network& network, std::size_t micro_batch = 0);
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  // Gives sample number k of a call, k in [0, count): called in ascending order, once or several times each.
  using ExampleAt = std::function<Example<Real>(std::size_t k)>;

  // Mean loss over the samples; its gradient is written to `gradient`, shape (dim()). Both ranges stay the
  // caller's. Throws DataError for a token, label, feature number or length that does not fit the network.
  double loss_and_gradient(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                           std::span<Real> gradient);

  // The same with options (engine/oracle.h); nothing when it was stopped. The first call for some coordinates
  // allocates a list of what they need.
  std::optional<double> compute(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                                std::span<Real> gradient, const GradientOptions& options);

  // What compute() takes for these coordinates, as a share of the whole gradient's time. Allocates.
  double cost(const Coordinates& wanted) const;

  // Mean losses and their gradients at x and at y, block by block, to the bits of two calls.
  TwoLosses<double> two_gradients(std::span<const Real> x, std::span<const Real> y, std::size_t count,
                                  const ExampleAt& example, std::span<Real> at_x, std::span<Real> at_y);

  // Mean loss and its derivative in the direction v, by forward mode. Allocates at its first call as many
  // numbers as the values take.
  Directional<double> directional(std::span<const Real> x, std::span<const Real> v, std::size_t count,
                                  const ExampleAt& example);

  // Writes the mean of the samples' gradients, each times factor(its squared norm); returns the mean loss.
  // Allocates at its first call another arena, never the caller's. REQUIRES: knows_sample_norms().
  double scaled_gradients(std::span<const Real> x, std::size_t count, const ExampleAt& example,
                          const std::function<double(double square)>& factor, std::span<Real> gradient);
  // False for networks with convolutions, with parameters that are read twice, with many positions, or with a
  // budget for activations: norms take the gradients of all of them at once.
  bool knows_sample_norms() const;

  // x -= step * gradient of the mean loss; returns the loss before. When the samples fit one block and no
  // parameter is read by two operations, each operation updates its parameters as soon as it has read them,
  // and needs no gradient array; otherwise the executor keeps a gradient array of its own from the first such
  // call on.
  double descend(std::span<Real> x, std::size_t count, const ExampleAt& example, Real step);

  // Mean loss alone.
  double loss(std::span<const Real> x, std::size_t count, const ExampleAt& example);

  // Calls `take(k, outputs)` for each sample k with the input of the loss, outputs of shape (positions,
  // channels).
  using TakeOutputs = std::function<void(std::size_t k, std::span<const Real> outputs)>;
  void outputs(std::span<const Real> x, std::size_t count, const ExampleAt& example, const TakeOutputs& take);

  std::size_t dim() const;
  std::size_t positions() const;
  std::size_t output_channels() const;
  std::size_t micro_batch() const;  // samples per pass
  std::size_t arena_bytes() const;  // activations, their gradients, scratch
  const Kernels<Real>& kernels() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

extern template class Executor<float>;
extern template class Executor<double>;

}  // namespace gradwire
