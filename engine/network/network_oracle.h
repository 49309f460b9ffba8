// A network over the samples of one client: f_i(x) = mean loss + R(x). One line per model:
//   NetworkOracle<float> oracle(gpt(shape), std::make_unique<Windows<float>>(text));
#pragma once

#include <memory>

#include "engine/network/example.h"
#include "engine/network/network.h"
#include "engine/network/runner.h"
#include "engine/oracle.h"
#include "engine/regularizer.h"

namespace gradwire {

template <class Real>
class NetworkOracle : public Oracle<Real> {
 public:
  // `test` may be null: then there is no score.
  NetworkOracle(const Network& network, std::unique_ptr<const Examples<Real>> train,
                std::unique_ptr<const Examples<Real>> test = nullptr,
                Regularizer regularizer = Regularizer::kNone, double lambda = 0);

  std::size_t dim() const override { return runner_.dim(); }
  std::size_t sample_count() const override { return train_->size(); }
  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override;

  // x -= step * gradient of the mean loss over `batch`; returns the loss before the step. Needs no gradient
  // array where the network allows it (Runner::descend). The regulariser must be none.
  Real descend(std::span<Real> x, Batch batch, Real step);

  // Counts over all positions of the test samples. The network predicts the class with the largest output,
  // the smallest such class if several are equal. Outputs that are nan count as wrong. Throws DataError for
  // samples with more or fewer labels than positions.
  std::optional<Score> score(std::span<const Real> x) override;

  const Runner<Real>& runner() const { return runner_; }

 private:
  Runner<Real> runner_;
  std::unique_ptr<const Examples<Real>> train_, test_;
  Regularizer regularizer_;
  double lambda_;
};

extern template class NetworkOracle<float>;
extern template class NetworkOracle<double>;

}  // namespace gradwire
