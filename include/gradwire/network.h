// A model as a program: a list of vector operations, recorded once. An oracle runs it over samples. Recording
// computes no values; it checks shapes and lays out the parameters.
//
//   Network letters(std::size_t hidden) {  // the character-level next-letter model of Bengio et al.
//     Network net;
//     const auto table = net.table(27, 64);
//     const auto first = net.linear(16 * 64, hidden), second = net.linear(hidden, 27);
//     cross_entropy(affine(second, tanh(affine(first, net.embed(table, 16)))));
//     return net;
//   }
//   auto oracle = network_oracle<float>(letters(128), {.count = m, .tokens = words, .labels = next});
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
#include <vector>

#include "gradwire/oracle.h"
#include "gradwire/version.h"

namespace gradwire {

struct NetworkContent;   // private
struct NetworkIdentity;  // private

// A letter, word or class: a number below the size of its table.
using Token = std::uint16_t;

// The network that declared a layer. Copies of a network share it.
using NetworkId = std::shared_ptr<const NetworkIdentity>;

// Ranges of the flat parameter vector. `first` is the first coordinate. Two layers may share a range. For
// example, a table of words may also be the weights of the last layer.
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
// numbers, or is empty. Throws std::logic_error in a computation if an entry stays unwritten.
using LossFunction = std::function<double(std::span<const double> output, std::size_t label,
                                          std::span<const double> target, std::span<double> derivative)>;

class Network;

// The result of a recorded operation: one vector at each position of each sample.
class GRADWIRE_API Tensor {
 public:
  Tensor() = default;  // belongs to no network; any operation on it throws std::logic_error
  Tensor(Network* network, std::uint32_t node) : network_(network), node_(node) {}  // for the library

  Network& network() const;
  std::uint32_t node() const { return node_; }  // number of the vector in its network
  TensorShape shape() const;

 private:
  Network* network_ = nullptr;
  std::uint32_t node_ = 0;
};

// Functions of one number.
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
class GRADWIRE_API BudgetTooSmall : public std::length_error {
 public:
  BudgetTooSmall(std::uint64_t given, std::uint64_t least);
  std::uint64_t least() const { return least_; }  // bytes

 private:
  std::uint64_t least_;
};

// A Tensor points to its network: record the whole network before you copy or return it.
class GRADWIRE_API Network {
 public:
  explicit Network(std::size_t positions = 1);
  Network(const Network& other);
  Network& operator=(const Network& other);
  ~Network();

  // ---- parameters; each call appends to the flat vector ----
  Table table(std::size_t rows, std::size_t width);                  // starts as N(0, 1)
  Linear linear(std::size_t in, std::size_t out, bool bias = true);  // N(0, 1/in), bias 0
  FeatureLinear feature_linear(std::size_t in, std::size_t out);     // N(0, 1/in), bias 0
  LayerNorm layer_norm(std::size_t width, double epsilon = 1e-5);    // gain 1, bias 0
  Convolution convolution(std::size_t in, std::size_t out, std::size_t size, std::size_t padding = 0);

  // ---- inputs of each sample (NetworkSamples) ----
  // Reads `features`: positions() times shape.size() numbers.
  Tensor features(TensorShape shape);
  Tensor features(std::size_t channels) { return features(TensorShape{channels}); }
  // Computes sum_k value_k weights[index_k] + bias over `index` and `value`. Requires one position.
  Tensor affine(const FeatureLinear& layer);
  // Looks up `tokens` rows of `table` for each position and concatenates them. Reads NetworkSamples::tokens,
  // position by position.
  Tensor embed(const Table& table, std::size_t tokens = 1);
  // Looks up one token per position, and adds row t of `position` at position t.
  Tensor embed(const Table& table, const Table& position);

  void keep_activations(KeptActivations kept);
  KeptActivations kept_activations() const;
  void limit_activations(ActivationBudget budget);
  ActivationBudget activation_budget() const;

  std::size_t positions() const;
  std::size_t dim() const;

  // Returns the initial parameters, shape (dim()). They depend only on the seed.
  std::vector<double> start(std::uint64_t seed) const;

  NetworkContent& content() { return *content_; }  // for the library
  const NetworkContent& content() const { return *content_; }

 private:
  std::unique_ptr<NetworkContent> content_;
};

// Computes W x + b at each position. Reads an image as one vector, channel by channel.
GRADWIRE_API Tensor affine(const Linear& layer, const Tensor& x);
GRADWIRE_API Tensor activation(Activation function, const Tensor& x);
inline Tensor tanh(const Tensor& x) { return activation(Activation::kTanh, x); }
inline Tensor relu(const Tensor& x) { return activation(Activation::kRelu, x); }
inline Tensor sigmoid(const Tensor& x) { return activation(Activation::kSigmoid, x); }
// Computes x Phi(x) in its tanh form (Hendrycks and Gimpel, arXiv:1606.08415).
inline Tensor gelu(const Tensor& x) { return activation(Activation::kGelu, x); }
GRADWIRE_API Tensor operator+(const Tensor& x, const Tensor& y);
GRADWIRE_API Tensor operator*(const Tensor& x, const Tensor& y);  // number by number
// Computes gain (x - mean) / sqrt(variance + epsilon) + bias over the channels of a position (Ba et al.,
// arXiv:1607.06450).
GRADWIRE_API Tensor norm(const LayerNorm& layer, const Tensor& x);
// Computes softmax(K^T q / sqrt(width / heads)) V in each of `heads` equal slices of the channels (Vaswani et
// al., arXiv:1706.03762). heads divides the width. Position t attends to positions 0 .. t if causal, else to
// all. Later positions then have no influence, whatever their scores, except that a value there that is not
// finite gives nan.
GRADWIRE_API Tensor attention(const Tensor& key, const Tensor& query, const Tensor& value, std::size_t heads,
                              bool causal = true);
// Computes the cross-correlation with stride 1. Pads the image with zeros.
GRADWIRE_API Tensor convolve(const Convolution& layer, const Tensor& x);
// Pool over adjacent size x size squares. Rows and columns that do not fill a square are dropped. max_pool()
// treats nan as larger than any number.
GRADWIRE_API Tensor max_pool(const Tensor& x, std::size_t size);
GRADWIRE_API Tensor average_pool(const Tensor& x, std::size_t size);
// Computes the mean over a sample's positions; the result is the same vector at each of them.
GRADWIRE_API Tensor mean_over_positions(const Tensor& x);

// ---- losses: the last operation of a network; the loss of a sample is the mean over its positions ----
// Computes -log softmax(x)[label]. Reads NetworkSamples::labels.
GRADWIRE_API void cross_entropy(const Tensor& x);
// Computes ||x - target||^2 / channels. Reads NetworkSamples::targets.
GRADWIRE_API void mean_squared_error(const Tensor& x);
// Reads labels and targets, each if the samples have them. Several threads may call the function at the same
// time.
GRADWIRE_API void custom_loss(const Tensor& x, LossFunction function);

// m samples in memory, one after another. A member that the network does not read stays empty.
template <class Real>
struct NetworkSamples {
  std::size_t count = 0;            // m
  std::vector<Real> features = {};  // shape (m, positions, channels x height x width)
  std::vector<Token> tokens = {};   // shape (m, positions, tokens of a position)
  std::vector<Token> labels = {};   // shape (m, positions)
  std::vector<Real> targets = {};   // shape (m, positions, channels)
  // Sparse features in compressed rows: sample k has the features index[e] with value[e] for row_start[k] <=
  // e < row_start[k + 1]. The length of row_start is m + 1.
  std::vector<std::uint64_t> row_start = {};
  std::vector<std::uint32_t> index = {};
  std::vector<Real> value = {};

  bool operator==(const NetworkSamples&) const = default;
};

// Returns the oracle of a client with these samples: f_i(x) = mean loss + l2 / 2 ||x||^2. Its score() counts
// right predictions over all positions of the test samples, which then need labels: the predicted class is
// the one with the largest output. The oracle copies the network; Real is float or double. Throws BadInput if
// the samples do not fit the network, std::logic_error if the network has no loss or l2 is negative or not
// finite, and BudgetTooSmall.
template <class Real>
GRADWIRE_API std::unique_ptr<Oracle<Real>> network_oracle(const Network& network, NetworkSamples<Real> train,
                                                          NetworkSamples<Real> test = {}, double l2 = 0);

extern template std::unique_ptr<Oracle<float>> network_oracle(const Network&, NetworkSamples<float>,
                                                              NetworkSamples<float>, double);
extern template std::unique_ptr<Oracle<double>> network_oracle(const Network&, NetworkSamples<double>,
                                                               NetworkSamples<double>, double);

}  // namespace gradwire
