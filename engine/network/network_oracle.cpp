#include "engine/network/network_oracle.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/dataset.h"
#include "engine/regularizer.h"
#include "engine/sparse_rows.h"

namespace gradwire {

template <class Real>
NetworkOracle<Real>::NetworkOracle(const Network& network, std::unique_ptr<const Examples<Real>> train,
                                   std::unique_ptr<const Examples<Real>> test, Regularizer regularizer,
                                   double lambda)
    : runner_(network),
      train_(std::move(train)),
      test_(std::move(test)),
      regularizer_(regularizer),
      lambda_(lambda) {
  if (train_ == nullptr) throw std::logic_error("a NetworkOracle without samples to train on");
}

template <class Real>
Real NetworkOracle<Real>::loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) {
  const BatchRows rows(batch, sample_count());
  const double loss = runner_.loss_and_gradient(
      x, rows.count(), [&](std::size_t k) { return (*train_)[rows[k]]; }, gradient);
  return static_cast<Real>(loss + add_regularizer(regularizer_, lambda_, x, gradient));
}

template <class Real>
Real NetworkOracle<Real>::descend(std::span<Real> x, Batch batch, Real step) {
  if (regularizer_ != Regularizer::kNone) throw std::logic_error("descend() knows no regularizer");
  const BatchRows rows(batch, sample_count());
  return static_cast<Real>(runner_.descend(
      x, rows.count(), [&](std::size_t k) { return (*train_)[rows[k]]; }, step));
}

template <class Real>
std::optional<Score> NetworkOracle<Real>::score(std::span<const Real> x) {
  if (test_ == nullptr || test_->size() == 0) return std::nullopt;
  Score score;
  const std::size_t width = runner_.output_channels();
  runner_.outputs(
      x, test_->size(), [&](std::size_t k) { return (*test_)[k]; },
      [&](std::size_t k, std::span<const Real> outputs) {
        const auto labels =
            (*test_)[k].labels;  // not every loss reads labels, so the run may not have checked them
        if (!labels.empty() && labels.size() != runner_.positions())
          throw DataError("a test sample has " + std::to_string(labels.size()) +
                          " labels but the network has " + std::to_string(runner_.positions()) +
                          " positions");
        for (std::size_t t = 0; t < labels.size(); ++t) {
          const auto z = outputs.subspan(t * width, width);
          const auto best = std::max_element(z.begin(), z.end()) - z.begin();  // the first of equals
          const bool numbers = std::none_of(z.begin(), z.end(), [](Real v) { return std::isnan(v); });
          score.correct += numbers && static_cast<std::size_t>(best) == labels[t];
          ++score.tested;
        }
      });
  return score.tested == 0 ? std::nullopt : std::optional<Score>(score);
}

template class NetworkOracle<float>;
template class NetworkOracle<double>;

}  // namespace gradwire
