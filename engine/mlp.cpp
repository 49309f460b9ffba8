#include "engine/mlp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "engine/random.h"
#include "engine/regularizer.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kNoClass = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kMaxParameters = std::size_t{1}
                                       << 31;  // leaves room for activations beside them on the tape

// kNoClass for a label that is not in the list.
std::vector<std::uint32_t> classes(const Dataset& data, std::span<const double> labels) {
  std::vector<std::uint32_t> result(data.rows(), kNoClass);
  for (std::size_t r = 0; r < data.rows(); ++r) {
    const auto at = std::lower_bound(labels.begin(), labels.end(), data.label[r]);
    if (at != labels.end() && *at == data.label[r])
      result[r] = static_cast<std::uint32_t>(at - labels.begin());
  }
  return result;
}

}  // namespace

MlpShape::MlpShape(std::size_t inputs, std::span<const std::uint32_t> hidden, std::size_t classes) {
  const auto add_layer = [this](std::size_t in, std::size_t out) {
    if (out != 0 && in >= (kMaxParameters - dim_) / out) {
      throw DataError("the network has more than " + std::to_string(kMaxParameters) +
                      " parameters; make problem.hidden smaller");
    }
    layers_.push_back({.in = in, .out = out, .weights = dim_, .bias = dim_ + in * out});
    dim_ += (in + 1) * out;
  };
  std::size_t in = inputs;
  for (const std::uint32_t width : hidden) {
    add_layer(in, width);
    in = width;
  }
  add_layer(in, classes);
}

std::vector<double> MlpShape::start(std::uint64_t seed) const {
  std::vector<double> x(dim_);
  Random random(seed, "mlp start");
  for (const Layer& layer : layers_) {
    const double scale = 1 / std::sqrt(static_cast<double>(layer.in));
    for (std::size_t j = layer.weights; j < layer.bias; ++j) x[j] = scale * random.normal();
  }
  return x;
}

template <class Real>
MlpOracle<Real>::MlpOracle(const Part& part, const MlpShape& shape, std::span<const double> labels,
                           Regularizer regularizer, double lambda)
    : shape_(shape),
      rows_(part.train, shape.inputs()),
      class_(classes(part.train, labels)),
      test_rows_(part.test, shape.inputs()),
      test_class_(classes(part.test, labels)),
      regularizer_(regularizer),
      lambda_(lambda),
      tape_(shape.dim()) {
  const auto unknown = std::find(class_.begin(), class_.end(), kNoClass);
  if (unknown != class_.end()) {
    throw DataError("a sample has the label " + std::to_string(part.train.label[unknown - class_.begin()]) +
                    ", which is not among the " + std::to_string(labels.size()) +
                    " that the clients agreed on");
  }
}

template <class Real>
VarRange<Real> MlpOracle<Real>::logits(const SparseRows<Real>& rows, std::size_t r) {
  const VarRange<Real> parameters = tape_.parameters();
  const auto weights = [&](const MlpShape::Layer& l) { return parameters.subrange(l.weights, l.in * l.out); };
  const auto bias = [&](const MlpShape::Layer& l) { return parameters.subrange(l.bias, l.out); };
  const auto layers = shape_.layers();
  const SparseInput<Real> sample{.index = rows.row_columns(r), .value = rows.row_values(r)};
  VarRange<Real> z = affine(weights(layers[0]), bias(layers[0]), sample);
  for (const MlpShape::Layer& layer : layers.subspan(1)) z = affine(weights(layer), bias(layer), tanh(z));
  return z;
}

template <class Real>
void MlpOracle<Real>::set_parameters(std::span<const Real> x) {
  check_length(x, dim());
  std::copy(x.begin(), x.end(), tape_.parameter_values().begin());
}

template <class Real>
Real MlpOracle<Real>::loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) {
  check_lengths(x, gradient, dim());
  const BatchRows rows(batch, sample_count());
  set_parameters(x);
  tape_.zero_parameter_gradients();
  const Real share = Real(1) / static_cast<Real>(rows.count());
  const auto start = tape_.checkpoint();
  double loss = 0;
  for (std::size_t k = 0; k < rows.count(); ++k) {
    const std::size_t r = rows[k];
    const Var<Real> sample_loss = softmax_cross_entropy(logits(rows_, r), class_[r]);
    loss += static_cast<double>(sample_loss.value());
    tape_.backward(sample_loss, share);
    tape_.rewind(start);
  }
  const auto sum = tape_.parameter_gradients();
  std::copy(sum.begin(), sum.end(), gradient.begin());
  loss /= static_cast<double>(rows.count());
  return static_cast<Real>(loss + add_regularizer(regularizer_, lambda_, x, gradient));
}

template <class Real>
std::optional<Score> MlpOracle<Real>::score(std::span<const Real> x) {
  set_parameters(x);
  if (test_rows_.rows() == 0) return std::nullopt;
  Score score;
  const auto start = tape_.checkpoint();
  for (std::size_t r = 0; r < test_rows_.rows(); ++r) {
    const auto z = tape_.values(logits(test_rows_, r));
    const auto best = std::max_element(z.begin(), z.end());  // the first of equals
    score.correct += static_cast<std::uint32_t>(best - z.begin()) == test_class_[r];
    ++score.tested;
    tape_.rewind(start);
  }
  return score;
}

template class MlpOracle<float>;
template class MlpOracle<double>;

}  // namespace gradwire
