// A model as a program: recorded once as a list of vector operations, then run forward and backward over
// blocks of samples by engine/nn/executor.h. Recording computes nothing; it checks shapes and lays out the
// parameters.
//
//   Network letters(std::size_t hidden) {  // the character-level next-letter model of Bengio et al.
//     Network net;
//     const auto table = net.table(27, 64);
//     const auto first = net.linear(16 * 64, hidden), second = net.linear(hidden, 27);
//     cross_entropy(affine(second, tanh(affine(first, net.embed(table, 16)))));
//     return net;
//   }
//
// A network has `positions` places per sample (1, or the length of a text); every vector exists at each of
// them. Parameters lie one behind the other in the order in which they were declared: one flat vector x of
// dim() numbers. Misuse (shapes that do not fit, tensors of two networks, no loss) throws std::logic_error
// with a one-line message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace gradwire {

// A letter, word or class: a number below the size of its table.
using Token = std::uint16_t;

// Which network a layer belongs to: the one that declared it, and its copies.
using NetworkId = std::shared_ptr<const char>;

// Ranges of the flat parameter vector, by their first coordinate.
struct Table {  // (rows, width), row by row
  std::size_t first = 0, rows = 0, width = 0;
  NetworkId network = nullptr;
};
struct Linear {  // weights (out, in), row by row; then bias (out)
  std::size_t first = 0, in = 0, out = 0;
  bool bias = true;
  NetworkId network = nullptr;
};
struct FeatureLinear {  // weights (in, out): those of one feature side by side; then bias (out)
  std::size_t first = 0, in = 0, out = 0;
  NetworkId network = nullptr;
};
struct LayerNorm {  // gain (width), then bias (width)
  std::size_t first = 0, width = 0;
  double epsilon = 0;
  NetworkId network = nullptr;
};
struct Convolution {  // weights (out, in, size, size); then bias (out)
  std::size_t first = 0, in = 0, out = 0, size = 0, padding = 0;
  NetworkId network = nullptr;
};

// channels x height x width; a plain vector has height = width = 1.
struct TensorShape {
  std::size_t channels = 0, height = 1, width = 1;
  std::size_t size() const { return channels * height * width; }
  bool operator==(const TensorShape&) const = default;
};

// A user's loss at one position of one sample: returns the value, and writes every entry of its derivative by
// `output`. The executor throws std::logic_error if an entry stays unwritten. `label` is the sample's target
// there (0 for samples without targets), `target` its target numbers (or empty).
using LossFunction = std::function<double(std::span<const double> output, std::size_t label,
                                          std::span<const double> target, std::span<double> derivative)>;

class Network;

// What an operation will compute: one vector at each position of each sample.
class Tensor {
 public:
  Tensor() = default;  // of no network; any operation on it throws std::logic_error
  Tensor(Network* network, std::uint32_t node) : network_(network), node_(node) {}

  Network& network() const;
  std::uint32_t node() const { return node_; }
  TensorShape shape() const;

 private:
  Network* network_ = nullptr;
  std::uint32_t node_ = 0;
};

enum class OpKind : std::uint8_t {
  kFeatures,
  kSparseFeatures,
  kEmbed,
  kAffine,
  kActivation,
  kAdd,
  kMultiply,
  kNorm,
  kAttention,
  kConvolution,
  kMaxPool,
  kAveragePool,
  kMeanOverPositions,
  kCrossEntropy,
  kSquaredError,
  kCustomLoss
};

// Functions of one number; engine/kernels/activations.h has each with its derivative.
enum class Activation : std::uint8_t { kTanh, kRelu, kSigmoid, kGelu };

// What an activation is kept in from forward to backward: its own type, or bfloat16, in half of the memory or
// a quarter. Losses and outputs have the same bits; gradients are those of activations that are rounded to 8
// bits where the slope of an operation reads them (docs/engine.md says how far that is off).
enum class KeptActivations : std::uint8_t { kExact, kBFloat16 };

// How many bytes one block of samples may take on its way through a network: activations, their gradients,
// scratch. What does not fit is computed again on the way back, with the same bits.
class ActivationBudget {
 public:
  ActivationBudget() = default;  // none: nothing is computed again
  explicit ActivationBudget(std::uint64_t bytes) : bytes_(bytes) {}
  // About sqrt(n) of n places where few values are alive keep theirs; all else is computed twice (Chen et
  // al., arXiv:1604.06174).
  static ActivationBudget sqrt() { return ActivationBudget(0); }

  bool is_none() const { return bytes_ == kNone; }
  bool is_sqrt() const { return bytes_ == 0; }
  std::uint64_t bytes() const { return bytes_; }
  bool operator==(const ActivationBudget&) const = default;

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t bytes_ = kNone;
};

// No schedule of the network fits; least() does.
class BudgetTooSmall : public std::length_error {
 public:
  BudgetTooSmall(std::uint64_t given, std::uint64_t least);
  std::uint64_t least() const { return least_; }  // bytes

 private:
  std::uint64_t least_;
};

class Network {
 public:
  // One operation. Numbers of nodes and parameters, no pointers: a network is a value.
  struct Op {
    static constexpr std::uint32_t kNone = ~0u;
    OpKind kind = OpKind::kFeatures;
    Activation activation = Activation::kTanh;
    std::uint32_t out = kNone;                    // node it makes
    std::uint32_t in[3] = {kNone, kNone, kNone};  // nodes it reads
    // Parameter ranges it reads (weights, then bias or the second table); count 0: none.
    std::size_t first[2] = {0, 0}, count[2] = {0, 0};
    std::size_t tokens = 0;   // kEmbed: per position
    std::size_t heads = 0;    // kAttention
    std::size_t window = 0;   // kConvolution: size; pooling: size and stride
    std::size_t padding = 0;  // kConvolution
    bool causal = true;       // kAttention
    double epsilon = 0;       // kNorm
    std::uint32_t loss = 0;   // kCustomLoss: which
  };

  explicit Network(std::size_t positions = 1);

  // ---- parameters; each call appends to the flat vector ----
  Table table(std::size_t rows, std::size_t width);                  // starts as N(0, 1)
  Linear linear(std::size_t in, std::size_t out, bool bias = true);  // N(0, 1/in), bias 0
  FeatureLinear feature_linear(std::size_t in, std::size_t out);     // N(0, 1/in), bias 0
  LayerNorm layer_norm(std::size_t width, double epsilon = 1e-5);    // gain 1, bias 0
  Convolution convolution(std::size_t in, std::size_t out, std::size_t size, std::size_t padding = 0);

  // ---- what comes in with each sample (engine/nn/example.h) ----
  // Example::features, positions() times shape.size() numbers.
  Tensor features(TensorShape shape);
  Tensor features(std::size_t channels) { return features(TensorShape{channels}); }
  // sum_k value_k weights[index_k] + bias over Example::index and value. One position.
  Tensor affine(const FeatureLinear& layer);
  // Rows of `table`, `tokens` of them side by side at each position: Example::tokens, position by position.
  Tensor embed(const Table& table, std::size_t tokens = 1);
  // One token per position, plus row t of `position` at position t.
  Tensor embed(const Table& table, const Table& position);

  void keep_activations(KeptActivations kept) { kept_ = kept; }
  KeptActivations kept_activations() const { return kept_; }
  void limit_activations(ActivationBudget budget) { budget_ = budget; }
  ActivationBudget activation_budget() const { return budget_; }

  std::size_t positions() const { return positions_; }
  std::size_t dim() const { return dim_; }
  const std::vector<Op>& ops() const { return ops_; }
  const std::vector<TensorShape>& nodes() const { return nodes_; }
  const LossFunction& loss_function(std::uint32_t number) const { return losses_[number]; }

  // First parameters, shape (dim()); a function of the seed.
  std::vector<double> start(std::uint64_t seed) const;

  // For the operations below: appends an operation with a result of this shape.
  Tensor record(Op op, const TensorShape& shape);
  // Throws std::logic_error for a layer of another network.
  void check_own(const NetworkId& layer_of) const;
  Tensor record_loss(Op op, const Tensor& x, LossFunction function = {});

 private:
  enum class Draw : std::uint8_t { kNormal, kOne, kZero };
  struct Parameters {  // a range and how it starts
    std::size_t first, count;
    Draw draw;
    double scale;
  };
  std::size_t take(std::size_t count, Draw draw, double scale);

  NetworkId id_ = std::make_shared<const char>();
  std::size_t positions_;
  std::size_t dim_ = 0;
  bool has_loss_ = false;
  KeptActivations kept_ = KeptActivations::kExact;
  ActivationBudget budget_;
  std::vector<Op> ops_;
  std::vector<TensorShape> nodes_;
  std::vector<Parameters> parameters_;
  std::vector<LossFunction> losses_;
};

// W x + b at each position; an image is read as one vector, channel by channel.
Tensor affine(const Linear& layer, const Tensor& x);
Tensor activation(Activation function, const Tensor& x);
inline Tensor tanh(const Tensor& x) { return activation(Activation::kTanh, x); }
inline Tensor relu(const Tensor& x) { return activation(Activation::kRelu, x); }
inline Tensor sigmoid(const Tensor& x) { return activation(Activation::kSigmoid, x); }
// x Phi(x), by its tanh form (Hendrycks and Gimpel, arXiv:1606.08415).
inline Tensor gelu(const Tensor& x) { return activation(Activation::kGelu, x); }
Tensor operator+(const Tensor& x, const Tensor& y);
Tensor operator*(const Tensor& x, const Tensor& y);  // number by number
// gain (x - mean) / sqrt(variance + epsilon) + bias over the channels of a position (Ba et al.,
// arXiv:1607.06450).
Tensor norm(const LayerNorm& layer, const Tensor& x);
// softmax(K^T q / sqrt(width / heads)) V, `heads` times over equal slices of the channels; at position t over
// positions 0 .. t (causal), or over all (Vaswani et al., arXiv:1706.03762). heads divides the width. Later
// positions have no influence, whatever their scores; but a value there that is not finite gives nan.
Tensor attention(const Tensor& key, const Tensor& query, const Tensor& value, std::size_t heads,
                 bool causal = true);
// Cross-correlation with stride 1, zeros around the image.
Tensor convolve(const Convolution& layer, const Tensor& x);
// Over size x size squares side by side; rows and columns that fill no square are dropped. nan is larger than
// any number.
Tensor max_pool(const Tensor& x, std::size_t size);
Tensor average_pool(const Tensor& x, std::size_t size);
// The mean over a sample's positions, the same vector at each of them.
Tensor mean_over_positions(const Tensor& x);

// ---- losses: the last operation of a network; the loss of a sample is the mean over its positions ----
// -log softmax(x)[Example::labels[t]]
void cross_entropy(const Tensor& x);
// ||x - target_t||^2 / channels, targets from Example::targets
void mean_squared_error(const Tensor& x);
void custom_loss(const Tensor& x, LossFunction function);

}  // namespace gradwire
