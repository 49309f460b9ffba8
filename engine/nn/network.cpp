#include "engine/nn/network.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/random.h"

namespace gradwire {
namespace {

constexpr std::size_t kMostParameters = 0xfffffffe;     // coordinates have 32-bit numbers
constexpr std::size_t kMaxSize = std::size_t{1} << 31;  // numbers of one tensor at one position
constexpr std::size_t kMostPooled = 4096;  // a float holds every index in a pooling square exactly

[[noreturn]] void refuse(const std::string& what) { throw std::logic_error(what); }

std::string text(const TensorShape& s) {
  if (s.height == 1 && s.width == 1) return std::to_string(s.channels) + " numbers";
  return "an image of " + std::to_string(s.channels) + " x " + std::to_string(s.height) + " x " +
         std::to_string(s.width);
}

void check_size(const char* what, std::size_t n) {
  if (n == 0 || n > kMaxSize)
    refuse(std::string(what) + " is " + std::to_string(n) + "; it must be 1 to " + std::to_string(kMaxSize));
}

// Returns a * b. Throws if it exceeds the largest number of parameters.
std::size_t product(std::size_t a, std::size_t b) {
  if (a != 0 && b > kMostParameters / a)
    refuse("a network has at most " + std::to_string(kMostParameters) + " parameters");
  return a * b;
}

void check_same_network(const Tensor& x, const Tensor& y) {
  if (&x.network() != &y.network())
    refuse("an operation reads tensors of two networks; all must belong to the same one");
}

}  // namespace

BudgetTooSmall::BudgetTooSmall(std::uint64_t given, std::uint64_t least)
    : std::length_error("an activation budget of " + std::to_string(given) +
                        " bytes is too small for the network; the least is " + std::to_string(least)),
      least_(least) {}

Network& Tensor::network() const {
  if (network_ == nullptr)
    refuse("a Tensor that belongs to no network: make it with Network::features or Network::embed");
  return *network_;
}

TensorShape Tensor::shape() const { return network().nodes().at(node_); }

Network::Network(std::size_t positions) : positions_(positions) {
  constexpr std::size_t kMaxPositions = 1 << 16;
  if (positions == 0 || positions > kMaxPositions)
    refuse("a network has 1 to " + std::to_string(kMaxPositions) + " positions, not " +
           std::to_string(positions));
}

std::size_t Network::take(std::size_t count, Draw draw, double scale) {
  if (count > kMostParameters - dim_)
    refuse("a network has at most " + std::to_string(kMostParameters) + " parameters");
  parameters_.push_back({dim_, count, draw, scale});
  return std::exchange(dim_, dim_ + count);
}

Table Network::table(std::size_t rows, std::size_t width) {
  check_size("the number of rows of a table", rows);
  check_size("the width of a table", width);
  if (rows > std::size_t{std::numeric_limits<Token>::max()} + 1)
    refuse("a table has at most 65536 rows, not " + std::to_string(rows));
  return {take(product(rows, width), Draw::kNormal, 1), rows, width, id_};
}

Linear Network::linear(std::size_t in, std::size_t out, bool bias) {
  check_size("the input of a linear layer", in);
  check_size("the output of a linear layer", out);
  const std::size_t first = take(product(in, out), Draw::kNormal, 1 / std::sqrt(static_cast<double>(in)));
  if (bias) take(out, Draw::kZero, 0);
  return {first, in, out, bias, id_};
}

FeatureLinear Network::feature_linear(std::size_t in, std::size_t out) {
  const Linear layer = linear(in, out);
  return {layer.first, in, out, id_};
}

LayerNorm Network::layer_norm(std::size_t width, double epsilon) {
  check_size("the width of a layer norm", width);
  if (!(epsilon >= 0) || !std::isfinite(epsilon))
    refuse("the epsilon of a layer norm must be finite and not negative");
  const std::size_t first = take(width, Draw::kOne, 1);
  take(width, Draw::kZero, 0);
  return {first, width, epsilon, id_};
}

Convolution Network::convolution(std::size_t in, std::size_t out, std::size_t size, std::size_t padding) {
  check_size("the input channels of a convolution", in);
  check_size("the output channels of a convolution", out);
  check_size("the filter size of a convolution", size);
  if (padding >= size) refuse("the padding of a convolution must be less than its filter size");
  const std::size_t fan_in = product(product(in, size), size);
  const std::size_t first =
      take(product(fan_in, out), Draw::kNormal, 1 / std::sqrt(static_cast<double>(fan_in)));
  take(out, Draw::kZero, 0);
  return {first, in, out, size, padding, id_};
}

Tensor Network::features(TensorShape shape) {
  check_size("the number of features", product(product(shape.channels, shape.height), shape.width));
  return record({.kind = OpKind::kFeatures}, shape);
}

Tensor Network::affine(const FeatureLinear& layer) {
  check_own(layer.network);
  if (positions_ != 1) refuse("affine over sparse features needs a network of one position");
  Op op{.kind = OpKind::kSparseFeatures};
  op.first[0] = layer.first, op.count[0] = layer.in * layer.out;
  op.first[1] = layer.first + op.count[0], op.count[1] = layer.out;
  return record(op, {layer.out});
}

Tensor Network::embed(const Table& table, std::size_t tokens) {
  check_own(table.network);
  check_size("the number of tokens of an embedding", tokens);
  Op op{.kind = OpKind::kEmbed};
  op.first[0] = table.first, op.count[0] = table.rows * table.width;
  op.tokens = tokens;
  check_size("the width of an embedding", product(tokens, table.width));
  return record(op, {tokens * table.width});
}

Tensor Network::embed(const Table& table, const Table& position) {
  check_own(table.network);
  check_own(position.network);
  if (position.rows != positions_ || position.width != table.width) {
    refuse("the table of positions needs " + std::to_string(positions_) + " rows of " +
           std::to_string(table.width) + " numbers");
  }
  Op op{.kind = OpKind::kEmbed};
  op.first[0] = table.first, op.count[0] = table.rows * table.width;
  op.first[1] = position.first, op.count[1] = position.rows * position.width;
  op.tokens = 1;
  return record(op, {table.width});
}

Tensor Network::record(Op op, const TensorShape& shape) {
  if (has_loss_) refuse("a network ends with its loss; record everything else before it");
  for (std::size_t i = 0; i < 2; ++i) {
    if (op.count[i] > 0 && (op.first[i] > dim_ || op.count[i] > dim_ - op.first[i]))
      refuse("an operation reads parameters that this network does not have");
  }
  for (const std::uint32_t in : op.in) {
    if (in != Op::kNone && in >= nodes_.size())
      refuse("an operation reads a tensor that this network does not have");
  }
  op.out = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(shape);
  ops_.push_back(op);
  return {this, op.out};
}

void Network::check_own(const NetworkId& layer_of) const {
  if (layer_of != id_)
    refuse("a layer belongs to another network, whose parameters this network does not have");
}

Tensor Network::record_loss(Op op, const Tensor& x, LossFunction function) {
  op.in[0] = x.node();
  if (op.kind == OpKind::kCustomLoss) {
    if (!function) refuse("custom_loss needs a function");
    op.loss = static_cast<std::uint32_t>(losses_.size());
    losses_.push_back(std::move(function));
  }
  const Tensor loss = record(op, {1});
  has_loss_ = true;
  return loss;
}

std::vector<double> Network::start(std::uint64_t seed) const {
  std::vector<double> x(dim_);
  Random random(seed, "network start");
  for (const Parameters& p : parameters_)
    for (std::size_t j = p.first; j < p.first + p.count; ++j) {
      if (p.draw == Draw::kNormal) x[j] = p.scale * random.normal();
      if (p.draw == Draw::kOne) x[j] = 1;
    }
  return x;
}

Tensor affine(const Linear& layer, const Tensor& x) {
  x.network().check_own(layer.network);
  if (x.shape().size() != layer.in)
    refuse("a linear layer of " + std::to_string(layer.in) + " inputs was given " + text(x.shape()));
  Network::Op op{.kind = OpKind::kAffine};
  op.in[0] = x.node();
  op.first[0] = layer.first, op.count[0] = layer.in * layer.out;
  op.first[1] = layer.first + op.count[0], op.count[1] = layer.bias ? layer.out : 0;
  return x.network().record(op, {layer.out});
}

Tensor activation(Activation function, const Tensor& x) {
  Network::Op op{.kind = OpKind::kActivation, .activation = function};
  op.in[0] = x.node();
  return x.network().record(op, x.shape());
}

namespace {

Tensor pair(OpKind kind, const char* name, const Tensor& x, const Tensor& y) {
  check_same_network(x, y);
  if (x.shape() != y.shape())
    refuse(std::string(name) + " needs two equal shapes, not " + text(x.shape()) + " and " + text(y.shape()));
  Network::Op op{.kind = kind};
  op.in[0] = x.node(), op.in[1] = y.node();
  return x.network().record(op, x.shape());
}

Tensor pool(OpKind kind, const Tensor& x, std::size_t size) {
  const TensorShape in = x.shape();
  if (size == 0 || size > in.height || size > in.width)
    refuse("pooling squares of side " + std::to_string(size) + " do not fit " + text(in));
  if (kind == OpKind::kMaxPool && size > kMostPooled)
    refuse("max pooling of squares of side " + std::to_string(size) + "; at most " +
           std::to_string(kMostPooled));
  Network::Op op{.kind = kind};
  op.in[0] = x.node();
  op.window = size;
  return x.network().record(op, {in.channels, in.height / size, in.width / size});
}

}  // namespace

Tensor operator+(const Tensor& x, const Tensor& y) { return pair(OpKind::kAdd, "the sum", x, y); }
Tensor operator*(const Tensor& x, const Tensor& y) { return pair(OpKind::kMultiply, "the product", x, y); }

Tensor norm(const LayerNorm& layer, const Tensor& x) {
  x.network().check_own(layer.network);
  if (x.shape().size() != layer.width)
    refuse("a layer norm of " + std::to_string(layer.width) + " numbers was given " + text(x.shape()));
  Network::Op op{.kind = OpKind::kNorm, .epsilon = layer.epsilon};
  op.in[0] = x.node();
  op.first[0] = layer.first, op.count[0] = 2 * layer.width;
  return x.network().record(op, x.shape());
}

Tensor attention(const Tensor& key, const Tensor& query, const Tensor& value, std::size_t heads,
                 bool causal) {
  check_same_network(key, query);
  check_same_network(key, value);
  const std::size_t width = key.shape().size();
  if (query.shape().size() != width || value.shape().size() != width)
    refuse("attention needs keys, queries and values of equal size, not " + text(key.shape()) + ", " +
           text(query.shape()) + " and " + text(value.shape()));
  if (heads == 0 || width % heads != 0)
    refuse("attention: " + std::to_string(heads) + " heads do not divide a width of " +
           std::to_string(width));
  Network::Op op{.kind = OpKind::kAttention, .heads = heads, .causal = causal};
  op.in[0] = key.node(), op.in[1] = query.node(), op.in[2] = value.node();
  return key.network().record(op, {width});
}

Tensor convolve(const Convolution& layer, const Tensor& x) {
  const TensorShape in = x.shape();
  x.network().check_own(layer.network);
  if (in.channels != layer.in)
    refuse("a convolution of " + std::to_string(layer.in) + " channels was given " + text(in));
  const std::size_t height = in.height + 2 * layer.padding, width = in.width + 2 * layer.padding;
  if (height < layer.size || width < layer.size)
    refuse("a filter of " + std::to_string(layer.size) + " x " + std::to_string(layer.size) +
           " does not fit " + text(in));
  Network::Op op{.kind = OpKind::kConvolution, .window = layer.size, .padding = layer.padding};
  op.in[0] = x.node();
  op.first[0] = layer.first, op.count[0] = layer.out * layer.in * layer.size * layer.size;
  op.first[1] = layer.first + op.count[0], op.count[1] = layer.out;
  return x.network().record(op, {layer.out, height - layer.size + 1, width - layer.size + 1});
}

Tensor max_pool(const Tensor& x, std::size_t size) { return pool(OpKind::kMaxPool, x, size); }
Tensor average_pool(const Tensor& x, std::size_t size) { return pool(OpKind::kAveragePool, x, size); }

Tensor mean_over_positions(const Tensor& x) {
  Network::Op op{.kind = OpKind::kMeanOverPositions};
  op.in[0] = x.node();
  return x.network().record(op, x.shape());
}

void cross_entropy(const Tensor& x) { x.network().record_loss({.kind = OpKind::kCrossEntropy}, x); }
void mean_squared_error(const Tensor& x) { x.network().record_loss({.kind = OpKind::kSquaredError}, x); }
void custom_loss(const Tensor& x, LossFunction function) {
  x.network().record_loss({.kind = OpKind::kCustomLoss}, x, std::move(function));
}

}  // namespace gradwire
