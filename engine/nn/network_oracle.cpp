#include "engine/nn/network_oracle.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/data/dataset.h"
#include "engine/data/sparse_rows.h"
#include "engine/nn/backward_pass.h"
#include "engine/nn/network_ops.h"
#include "engine/regularizer.h"

namespace gradwire {
namespace {

template <class Real>
std::size_t size_of(const Examples<Real>* examples) {
  return examples == nullptr ? 0 : examples->size();
}

}  // namespace

bool has_random_paths(const Network& network) {
  return std::ranges::any_of(network.content().ops, [&](const NetworkOp& op) {
    return op.kind == OpKind::kAffine && network.content().nodes[op.out].channels >= kFewestRandomUnits;
  });
}

template <class Real>
NetworkOracle<Real>::NetworkOracle(const Network& network, std::unique_ptr<const Examples<Real>> train,
                                   std::unique_ptr<const Examples<Real>> test, Regularizer regularizer,
                                   double lambda)
    : NetworkOracle(network, std::move(train), Shares::equal(1, size_of(train.get())), std::move(test),
                    Shares::equal(1, size_of(test.get()))) {
  regularizer_ = regularizer;
  lambda_ = lambda;
}

template <class Real>
NetworkOracle<Real>::NetworkOracle(const Network& network, std::unique_ptr<const Examples<Real>>&& train,
                                   Shares train_shares, std::unique_ptr<const Examples<Real>>&& test,
                                   Shares test_shares, KernelSet kernels)
    : network_(std::make_shared<const Network>(network)),
      executor_(network, 0, &kernels_of<Real>(kernels)),
      train_(std::move(train)),
      test_(std::move(test)),
      at_(std::move(train_shares), std::move(test_shares)) {
  if (train_ == nullptr) throw std::logic_error("a NetworkOracle needs samples to train on");
}

template <class Real>
NetworkOracle<Real>::NetworkOracle(const NetworkOracle& other)
    : RebindableOracle<Real>(),
      network_(other.network_),
      executor_(*other.network_, 0, &other.executor_.kernels()),
      train_(other.train_),
      test_(other.test_),
      at_(other.at_),
      regularizer_(other.regularizer_),
      lambda_(other.lambda_) {}

template <class Real>
Real NetworkOracle<Real>::loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) {
  const BatchRows rows(batch, at_.train());
  const double loss = executor_.loss_and_gradient(
      x, rows.count(), [&](std::size_t k) { return (*train_)[rows[k]]; }, gradient);
  return static_cast<Real>(loss + add_regularizer(regularizer_, lambda_, x, gradient));
}

// Adds the gradient of the regularizer last. So with a regularizer, options.finished is called only once, at
// the end.
template <class Real>
std::optional<Real> NetworkOracle<Real>::compute(std::span<const Real> x, Batch batch,
                                                 std::span<Real> gradient, const GradientOptions& options) {
  const BatchRows rows(batch, at_.train());
  const auto example = [&](std::size_t k) { return (*train_)[rows[k]]; };
  const bool plain = regularizer_ == Regularizer::kNone;
  GradientOptions inner;
  if (!plain)
    inner = {.wanted = options.wanted, .stop = options.stop, .finished = {}, .paths = options.paths};
  const std::optional<double> loss =
      executor_.compute(x, rows.count(), example, gradient, plain ? options : inner);
  if (!loss || plain) return loss ? std::optional<Real>(static_cast<Real>(*loss)) : std::nullopt;
  const double regular = add_regularizer(regularizer_, lambda_, x, gradient);
  if (options.finished) options.finished({0, gradient.size()});
  return static_cast<Real>(*loss + regular);
}

template <class Real>
Real NetworkOracle<Real>::loss(std::span<const Real> x, Batch batch) {
  const BatchRows rows(batch, at_.train());
  const double loss = executor_.loss(x, rows.count(), [&](std::size_t k) { return (*train_)[rows[k]]; });
  return static_cast<Real>(loss + regularizer_value(regularizer_, lambda_, x));
}

template <class Real>
Directional<Real> NetworkOracle<Real>::directional(std::span<const Real> x, std::span<const Real> v,
                                                   Batch batch) {
  const BatchRows rows(batch, at_.train());
  const auto sum =
      executor_.directional(x, v, rows.count(), [&](std::size_t k) { return (*train_)[rows[k]]; });
  return {static_cast<Real>(sum.loss + regularizer_value(regularizer_, lambda_, x)),
          static_cast<Real>(sum.derivative + regularizer_derivative(regularizer_, lambda_, x, v))};
}

template <class Real>
TwoLosses<Real> NetworkOracle<Real>::two_gradients(std::span<const Real> x, std::span<const Real> y,
                                                   Batch batch, std::span<Real> at_x, std::span<Real> at_y) {
  const BatchRows rows(batch, at_.train());
  const auto loss = executor_.two_gradients(
      x, y, rows.count(), [&](std::size_t k) { return (*train_)[rows[k]]; }, at_x, at_y);
  return {static_cast<Real>(loss.x + add_regularizer(regularizer_, lambda_, x, at_x)),
          static_cast<Real>(loss.y + add_regularizer(regularizer_, lambda_, y, at_y))};
}

template <class Real>
Real NetworkOracle<Real>::clipped_gradient(std::span<const Real> x, Batch batch, double norm_bound,
                                           std::span<Real> gradient) {
  if (regularizer_ != Regularizer::kNone || !executor_.knows_sample_norms())
    return Oracle<Real>::clipped_gradient(x, batch, norm_bound, gradient);
  this->check_norm_bound(norm_bound);
  const BatchRows rows(batch, at_.train());
  return static_cast<Real>(executor_.scaled_gradients(
      x, rows.count(), [&](std::size_t k) { return (*train_)[rows[k]]; },
      [&](double square) { return this->clip_factor(norm_bound, square); }, gradient));
}

template <class Real>
Real NetworkOracle<Real>::descend(std::span<Real> x, Batch batch, Real step) {
  if (regularizer_ != Regularizer::kNone) throw std::logic_error("descend() does not support a regularizer");
  const BatchRows rows(batch, at_.train());
  return static_cast<Real>(executor_.descend(
      x, rows.count(), [&](std::size_t k) { return (*train_)[rows[k]]; }, step));
}

template <class Real>
std::optional<Score> NetworkOracle<Real>::score(std::span<const Real> x) {
  const ClientRows& tested = at_.test();
  if (test_ == nullptr || tested.count == 0) return std::nullopt;
  std::atomic<std::uint64_t> correct = 0, all = 0;  // several threads may count
  const std::size_t width = executor_.output_channels();
  executor_.outputs(
      x, tested.count, [&](std::size_t k) { return (*test_)[tested[k]]; },
      [&](std::size_t k, std::span<const Real> outputs) {
        // The executor has not checked the labels if the loss does not read them.
        const auto labels = (*test_)[tested[k]].labels;
        if (!labels.empty() && labels.size() != executor_.positions())
          throw DataError("a test sample has " + std::to_string(labels.size()) +
                          " labels but the network has " + std::to_string(executor_.positions()) +
                          " positions");
        for (std::size_t t = 0; t < labels.size(); ++t) {
          const auto z = outputs.subspan(t * width, width);
          const auto best = std::max_element(z.begin(), z.end()) - z.begin();  // the first of equal classes
          const bool numbers = std::none_of(z.begin(), z.end(), [](Real v) { return std::isnan(v); });
          correct += numbers && static_cast<std::size_t>(best) == labels[t] ? 1 : 0;
        }
        all += labels.size();
      });
  return all == 0 ? std::nullopt : std::optional<Score>({correct, all});
}

template class NetworkOracle<float>;
template class NetworkOracle<double>;

}  // namespace gradwire
