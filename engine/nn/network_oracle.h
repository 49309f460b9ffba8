// A network over the samples of a client: f_i(x) = mean loss + R(x). One line per model:
//   NetworkOracle<float> oracle(gpt(shape), std::make_unique<Windows<float>>(text));
#pragma once

#include <memory>
#include <optional>

#include "engine/client_objectives.h"
#include "engine/data/shares.h"
#include "engine/nn/example.h"
#include "engine/nn/executor.h"
#include "engine/nn/network.h"
#include "engine/regularizer.h"

namespace gradwire {

// Whether an affine map of the network has so many units that RandomPaths leave some of them out.
bool has_random_paths(const Network& network);

template <class Real>
class NetworkOracle : public RebindableOracle<Real> {
 public:
  // One client that holds all samples. `test` may be null: then there is no score.
  NetworkOracle(const Network& network, std::unique_ptr<const Examples<Real>> train,
                std::unique_ptr<const Examples<Real>> test = nullptr,
                Regularizer regularizer = Regularizer::kNone, double lambda = 0);
  // Clients that share them.
  NetworkOracle(const Network& network, std::unique_ptr<const Examples<Real>>&& train, Shares train_shares,
                std::unique_ptr<const Examples<Real>>&& test, Shares test_shares);
  // Copies share the samples; each has its own plan and memory to run the network.
  NetworkOracle(const NetworkOracle& other);
  NetworkOracle(NetworkOracle&&) noexcept = default;

  std::uint32_t clients() const { return at_.clients(); }
  std::size_t sample_count(std::uint32_t client) const { return at_.train_count(client); }
  void bind(std::uint32_t client) override { at_.bind(client); }
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
  // Without writing a sample's gradient, where the network allows it (Executor::knows_sample_norms) and there
  // is no regularizer.
  Real clipped_gradient(std::span<const Real> x, Batch batch, double norm_bound,
                        std::span<Real> gradient) override;

  // x -= step * gradient of the mean loss over `batch`; returns the loss before the step. Needs no gradient
  // array where the network allows it (Executor::descend). The regulariser must be none.
  Real descend(std::span<Real> x, Batch batch, Real step);

  // Counts over all positions of the test samples. The network predicts the class with the largest output,
  // the smallest such class if several are equal. Outputs that are nan count as wrong. Throws DataError for
  // samples with more or fewer labels than positions.
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
