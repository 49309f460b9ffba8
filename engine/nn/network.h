// A model as a program: a list of vector operations, recorded once. engine/nn/executor.h runs it forward and
// backward over microbatches of samples. Recording computes no values; it checks shapes and lays out the
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
// A sample has `positions` positions (1, or the length of a text), and every vector exists at each of them.
// The parameters form one flat vector x of dim() numbers, in the order of their declaration. Misuse throws
// std::logic_error with a one-line message. Misuse is, for example, shapes that do not fit, tensors of two
// networks, or a missing loss.
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

// Identity of the network that declared a layer. Copies of a network share it.
using NetworkId = std::shared_ptr<const char>;

// Ranges of the flat parameter vector. `first` is the first coordinate.
struct Table {  // (rows, width), row by row
  std::size_t first = 0, rows = 0, width = 0;
  NetworkId network = nullptr;
};
struct Linear {  // weights (out, in), row by row; then bias (out)
  std::size_t first = 0, in = 0, out = 0;
  bool bias = true;
  NetworkId network = nullptr;
};
struct FeatureLinear {  // weights (in, out), those of one feature adjacent; then bias (out)
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

// channels x height x width. A plain vector has height = width = 1.
struct TensorShape {
  std::size_t channels = 0, height = 1, width = 1;
  std::size_t size() const { return channels * height * width; }
  bool operator==(const TensorShape&) const = default;
};

// A user's loss at one position of one sample. It returns the value, and writes every entry of its derivative
// by `output`. `label` is the label of the position, or 0 if samples have none; `target` holds its target
// numbers, or is empty. The executor throws std::logic_error if an entry stays unwritten.
using LossFunction = std::function<double(std::span<const double> output, std::size_t label,
                                          std::span<const double> target, std::span<double> derivative)>;

class Network;

// The result of a recorded operation: one vector at each position of each sample.
class Tensor {
 public:
  Tensor() = default;  // belongs to no network; any operation on it throws std::logic_error
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

// Functions of one number. engine/kernels/activations.h has each with its derivative.
enum class Activation : std::uint8_t { kTanh, kRelu, kSigmoid, kGelu };

// The number type in which activations wait for the backward pass: their own type, or bfloat16, which takes
// half of the memory of float and a quarter of double. With bfloat16, losses and outputs keep their bits, but
// derivatives read activations that are rounded to 8 bits. docs/explanation/engine.md gives the error.
enum class KeptActivations : std::uint8_t { kExact, kBFloat16 };

// The bytes that one microbatch may take: activations, their gradients and scratch. Activations that do not
// fit are rematerialized in the backward pass, with the same bits.
class ActivationBudget {
 public:
  ActivationBudget() = default;  // no limit: nothing is computed again
  explicit ActivationBudget(std::uint64_t bytes) : bytes_(bytes) {}
  // Keeps activations only at about sqrt(n) of the n places where few values are alive, and computes the
  // others twice (Chen et al., arXiv:1604.06174).
  static ActivationBudget sqrt() { return ActivationBudget(0); }

  bool is_none() const { return bytes_ == kNone; }
  bool is_sqrt() const { return bytes_ == 0; }
  std::uint64_t bytes() const { return bytes_; }
  bool operator==(const ActivationBudget&) const = default;

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t bytes_ = kNone;
};

// Thrown if no schedule of the network fits its budget. least() is the smallest budget that works.
class BudgetTooSmall : public std::length_error {
 public:
  BudgetTooSmall(std::uint64_t given, std::uint64_t least);
  std::uint64_t least() const { return least_; }  // bytes

 private:
  std::uint64_t least_;
};

class Network {
 public:
  // One operation. It holds numbers of nodes and parameters but no pointers, so a network is a value.
  struct Op {
    static constexpr std::uint32_t kNone = ~0u;
    OpKind kind = OpKind::kFeatures;
    Activation activation = Activation::kTanh;
    std::uint32_t out = kNone;                    // node it makes
    std::uint32_t in[3] = {kNone, kNone, kNone};  // nodes it reads
    // Parameter ranges it reads: weights, then bias or the second table. A count of 0 means no range.
    std::size_t first[2] = {0, 0}, count[2] = {0, 0};
    std::size_t tokens = 0;   // kEmbed: tokens per position
    std::size_t heads = 0;    // kAttention
    std::size_t window = 0;   // kConvolution: size; pooling: size and stride
    std::size_t padding = 0;  // kConvolution
    bool causal = true;       // kAttention
    double epsilon = 0;       // kNorm
    std::uint32_t loss = 0;   // kCustomLoss: number of the loss function
  };

  explicit Network(std::size_t positions = 1);

  // ---- parameters; each call appends to the flat vector ----
  Table table(std::size_t rows, std::size_t width);                  // starts as N(0, 1)
  Linear linear(std::size_t in, std::size_t out, bool bias = true);  // N(0, 1/in), bias 0
  FeatureLinear feature_linear(std::size_t in, std::size_t out);     // N(0, 1/in), bias 0
  LayerNorm layer_norm(std::size_t width, double epsilon = 1e-5);    // gain 1, bias 0
  Convolution convolution(std::size_t in, std::size_t out, std::size_t size, std::size_t padding = 0);

  // ---- inputs of each sample (engine/nn/example.h) ----
  // Reads Example::features: positions() times shape.size() numbers.
  Tensor features(TensorShape shape);
  Tensor features(std::size_t channels) { return features(TensorShape{channels}); }
  // Computes sum_k value_k weights[index_k] + bias over Example::index and value. Requires one position.
  Tensor affine(const FeatureLinear& layer);
  // Looks up `tokens` rows of `table` for each position and concatenates them. Reads Example::tokens,
  // position by position.
  Tensor embed(const Table& table, std::size_t tokens = 1);
  // Looks up one token per position, and adds row t of `position` at position t.
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

  // Returns the initial parameters, shape (dim()). They depend only on the seed.
  std::vector<double> start(std::uint64_t seed) const;

  // Appends an operation whose result has this shape. Used by the operations below.
  Tensor record(Op op, const TensorShape& shape);
  // Throws std::logic_error for a layer of another network.
  void check_own(const NetworkId& layer_of) const;
  Tensor record_loss(Op op, const Tensor& x, LossFunction function = {});

 private:
  enum class Draw : std::uint8_t { kNormal, kOne, kZero };
  struct Parameters {  // a range and its initial values
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

// Computes W x + b at each position. Reads an image as one vector, channel by channel.
Tensor affine(const Linear& layer, const Tensor& x);
Tensor activation(Activation function, const Tensor& x);
inline Tensor tanh(const Tensor& x) { return activation(Activation::kTanh, x); }
inline Tensor relu(const Tensor& x) { return activation(Activation::kRelu, x); }
inline Tensor sigmoid(const Tensor& x) { return activation(Activation::kSigmoid, x); }
// Computes x Phi(x) in its tanh form (Hendrycks and Gimpel, arXiv:1606.08415).
inline Tensor gelu(const Tensor& x) { return activation(Activation::kGelu, x); }
Tensor operator+(const Tensor& x, const Tensor& y);
Tensor operator*(const Tensor& x, const Tensor& y);  // number by number
// Computes gain (x - mean) / sqrt(variance + epsilon) + bias over the channels of a position (Ba et al.,
// arXiv:1607.06450).
Tensor norm(const LayerNorm& layer, const Tensor& x);
// Computes softmax(K^T q / sqrt(width / heads)) V in each of `heads` equal slices of the channels (Vaswani et
// al., arXiv:1706.03762). heads divides the width. Position t attends to positions 0 .. t if causal, else to
// all. Later positions then have no influence, whatever their scores, except that a value there that is not
// finite gives nan.
Tensor attention(const Tensor& key, const Tensor& query, const Tensor& value, std::size_t heads,
                 bool causal = true);
// Computes the cross-correlation with stride 1. Pads the image with zeros.
Tensor convolve(const Convolution& layer, const Tensor& x);
// Pool over adjacent size x size squares. Rows and columns that do not fill a square are dropped. max_pool()
// treats nan as larger than any number.
Tensor max_pool(const Tensor& x, std::size_t size);
Tensor average_pool(const Tensor& x, std::size_t size);
// Computes the mean over a sample's positions; the result is the same vector at each of them.
Tensor mean_over_positions(const Tensor& x);

// ---- losses: the last operation of a network; the loss of a sample is the mean over its positions ----
// Computes -log softmax(x)[Example::labels[t]].
void cross_entropy(const Tensor& x);
// Computes ||x - target_t||^2 / channels. Reads Example::targets.
void mean_squared_error(const Tensor& x);
void custom_loss(const Tensor& x, LossFunction function);

}  // namespace gradwire
