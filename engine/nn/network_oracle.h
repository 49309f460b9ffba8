// A network over the samples of a client: f_i(x) = mean loss + R(x). One line per model:
//   NetworkOracle<float> oracle(gpt(shape), std::make_unique<TextSamples<float>>(windows));
#pragma once

#include <memory>
#include <optional>

#include "engine/client_objectives.h"
#include "engine/data/shares.h"
#include "engine/kernels/select.h"
#include "engine/nn/example.h"
#include "engine/nn/executor.h"
#include "engine/regularizer.h"
#include "gradwire/network.h"

namespace gradwire {

// Returns whether RandomPaths leave out units: some affine map of the network has at least kFewestRandomUnits
// units.
bool has_random_paths(const Network& network);

template <class Real>
class NetworkOracle : public RebindableOracle<Real> {
 public:
  // Makes the oracle of one client that holds all samples. score() returns nullopt if `test` is null.
  NetworkOracle(const Network& network, std::unique_ptr<const Examples<Real>> train,
                std::unique_ptr<const Examples<Real>> test = nullptr,
                Regularizer regularizer = Regularizer::kNone, double lambda = 0);
  // Makes the oracle of clients that share the samples.
  NetworkOracle(const Network& network, std::unique_ptr<const Examples<Real>>&& train, Shares train_shares,
                std::unique_ptr<const Examples<Real>>&& test, Shares test_shares,
                KernelSet kernels = KernelSet::kBest);
  // Shares the samples with `other`. Each copy has its own plan, and its own memory to run the network.
  NetworkOracle(const NetworkOracle& other);
  NetworkOracle(NetworkOracle&&) noexcept = default;

  std::uint32_t clients() const { return at_.clients(); }
  std::size_t sample_count(std::uint32_t client) const { return at_.train_count(client); }
  void bind(std::uint32_t client) override { at_.bind(client); }
  bool share_work(const WorkSharing& sharing) override {
    executor_.share_work(sharing);
    return true;
  }
  std::size_t dim() const override { return executor_.dim(); }
  std::size_t sample_count() const override { return at_.train().count; }
  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override;

  std::optional<Real> compute(std::span<const Real> x, Batch batch, std::span<Real> gradient,
                              const GradientOptions& options) override;
  double cost(const Coordinates& wanted) const override { return executor_.cost(wanted); }
  Real loss(std::span<const Real> x, Batch batch) override;
  Directional<Real> directional(std::span<const Real> x, std::span<const Real> v, Batch batch) override;
  TwoLosses<Real> two_gradients(std::span<const Real> x, std::span<const Real> y, Batch batch,
                                std::span<Real> at_x, std::span<Real> at_y) override;
  // Stores no gradients of single samples if the network allows it (Executor::knows_sample_norms) and the
  // oracle has no regularizer.
  Real clipped_gradient(std::span<const Real> x, Batch batch, double norm_bound,
                        std::span<Real> gradient) override;

  // Does x -= step * gradient of the mean loss over `batch`. Returns the loss before the step. Needs no
  // gradient array if the network allows it (Executor::descend). REQUIRES: no regularizer.
  Real descend(std::span<Real> x, Batch batch, Real step);

  // Counts right predictions over all positions of the test samples. The predicted class is the one with the
  // largest output, or the smallest such class if several are equal. Outputs that are nan count as wrong.
  // Throws DataError if a sample does not have one label per position.
  std::optional<Score> score(std::span<const Real> x) override;

  const Executor<Real>& executor() const { return executor_; }

 private:
  std::shared_ptr<const Network> network_;
  Executor<Real> executor_;
  std::shared_ptr<const Examples<Real>> train_, test_;
  ClientCursor at_;
  Regularizer regularizer_ = Regularizer::kNone;
  double lambda_ = 0;
};

extern template class NetworkOracle<float>;
extern template class NetworkOracle<double>;

}  // namespace gradwire
