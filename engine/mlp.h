// A classifier: fully connected layers with tanh between them, softmax cross-entropy on top. No hidden layer
// is softmax regression, the convex baseline. The gradient is computed sample by sample on a tape: memory of
// one sample, no allocation after the first.
//
// tanh, not relu: the loss stays smooth, as the theory of the methods assumes. On the digits (64-32-10, full
// gradients) relu with its customary start needs some 15 % fewer rounds at steps up to 1 but diverges at 2,
// where tanh still trains; test accuracy is the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/problem.h"
#include "engine/sparse_rows.h"
#include "engine/tape.h"

namespace gradwire {

// Where the layers lie in the flat vector of parameters: layer by layer weights (in, out) row by row, then
// bias (out).
class MlpShape {
 public:
  struct Layer {
    std::size_t in, out;
    std::size_t weights, bias;  // first coordinate of each
  };

  // Throws DataError when the model has more parameters than 32-bit coordinates can name.
  MlpShape(std::size_t inputs, std::span<const std::uint32_t> hidden, std::size_t classes);

  std::span<const Layer> layers() const { return layers_; }
  std::size_t inputs() const { return layers_.front().in; }
  std::size_t dim() const { return dim_; }

  // Weights N(0, 1/in), so that activations keep their size from layer to layer; biases 0.
  std::vector<double> start(std::uint64_t seed) const;

 private:
  std::vector<Layer> layers_;
  std::size_t dim_ = 0;
};

template <class Real>
class MlpOracle final : public Oracle<Real> {
 public:
  // `labels`: the distinct labels of all clients, ascending; they become classes 0, 1, ... Throws DataError
  // when a training sample has another label, or a feature that the shape has no input for.
  MlpOracle(const Part& part, const MlpShape& shape, std::span<const double> labels, Regularizer regularizer,
            double lambda);

  std::size_t dim() const override { return shape_.dim(); }
  std::size_t sample_count() const override { return rows_.rows(); }
  Real loss_and_gradient(std::span<const Real> x, Batch batch, std::span<Real> gradient) override;

  // The class with the largest logit, the smaller one of equals. Nothing when this client has no test
  // samples.
  std::optional<Score> score(std::span<const Real> x) override;

 private:
  VarRange<Real> logits(const SparseRows<Real>& rows, std::size_t r);
  void set_parameters(std::span<const Real> x);

  MlpShape shape_;
  SparseRows<Real> rows_;
  std::vector<std::uint32_t> class_;
  SparseRows<Real> test_rows_;
  std::vector<std::uint32_t> test_class_;
  Regularizer regularizer_;
  double lambda_;
  Tape<Real> tape_;
};

extern template class MlpOracle<float>;
extern template class MlpOracle<double>;

}  // namespace gradwire
