#include "gradwire/network.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/random.h"
#include "engine/nn/network_ops.h"

namespace gradwire {
namespace {

constexpr std::size_t kMostParameters = 0xfffffffe;     // coordinates have 32-bit numbers
constexpr std::size_t kMaxSize = std::size_t{1} << 31;  // numbers of one tensor at one position
constexpr std::size_t kMostPooled = 4096;  // a float holds every index in a pooling square exactly

using Draw = NetworkContent::Draw;

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

void check_own(const Network& network, const NetworkId& layer_of) {
  if (layer_of != network.content().id)
    refuse("a layer belongs to another network, whose parameters this network does not have");
}

// Appends parameters and returns the first.
std::size_t take(NetworkContent& content, std::size_t count, Draw draw, double scale) {
  if (count > kMostParameters - content.dim)
    refuse("a network has at most " + std::to_string(kMostParameters) + " parameters");
  content.parameters.push_back({content.dim, count, draw, scale});
  return std::exchange(content.dim, content.dim + count);
}

void record_loss(NetworkOp op, const Tensor& x) {
  op.in[0] = x.node();
  record(x.network(), op, {1});
  x.network().content().has_loss = true;
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

TensorShape Tensor::shape() const { return network().content().nodes.at(node_); }

Network::Network(std::size_t positions)
    : content_(std::make_unique<NetworkContent>(NetworkContent{.positions = positions})) {
  constexpr std::size_t kMaxPositions = 1 << 16;
  if (positions == 0 || positions > kMaxPositions)
    refuse("a network has 1 to " + std::to_string(kMaxPositions) + " positions, not " +
           std::to_string(positions));
}

Network::Network(const Network& other) : content_(std::make_unique<NetworkContent>(*other.content_)) {}
Network& Network::operator=(const Network& other) {
  *content_ = *other.content_;
  return *this;
}
Network::~Network() = default;

void Network::keep_activations(KeptActivations kept) { content_->kept = kept; }
KeptActivations Network::kept_activations() const { return content_->kept; }
void Network::limit_activations(ActivationBudget budget) { content_->budget = budget; }
ActivationBudget Network::activation_budget() const { return content_->budget; }
std::size_t Network::positions() const { return content_->positions; }
std::size_t Network::dim() const { return content_->dim; }

Table Network::table(std::size_t rows, std::size_t width) {
  check_size("the number of rows of a table", rows);
  check_size("the width of a table", width);
  if (rows > std::size_t{std::numeric_limits<Token>::max()} + 1)
    refuse("a table has at most 65536 rows, not " + std::to_string(rows));
  return {take(*content_, product(rows, width), Draw::kNormal, 1), rows, width, content_->id};
}

Linear Network::linear(std::size_t in, std::size_t out, bool bias) {
  check_size("the input of a linear layer", in);
  check_size("the output of a linear layer", out);
  const std::size_t first =
      take(*content_, product(in, out), Draw::kNormal, 1 / std::sqrt(static_cast<double>(in)));
  if (bias) take(*content_, out, Draw::kZero, 0);
  return {first, in, out, bias, content_->id};
}

FeatureLinear Network::feature_linear(std::size_t in, std::size_t out) {
  const Linear layer = linear(in, out);
  return {layer.first, in, out, content_->id};
}

LayerNorm Network::layer_norm(std::size_t width, double epsilon) {
  check_size("the width of a layer norm", width);
  if (!(epsilon >= 0) || !std::isfinite(epsilon))
    refuse("the epsilon of a layer norm must be finite and not negative");
  const std::size_t first = take(*content_, width, Draw::kOne, 1);
  take(*content_, width, Draw::kZero, 0);
  return {first, width, epsilon, content_->id};
}

Convolution Network::convolution(std::size_t in, std::size_t out, std::size_t size, std::size_t padding) {
  check_size("the input channels of a convolution", in);
  check_size("the output channels of a convolution", out);
  check_size("the filter size of a convolution", size);
  if (padding >= size) refuse("the padding of a convolution must be less than its filter size");
  const std::size_t fan_in = product(product(in, size), size);
  const std::size_t first =
      take(*content_, product(fan_in, out), Draw::kNormal, 1 / std::sqrt(static_cast<double>(fan_in)));
  take(*content_, out, Draw::kZero, 0);
  return {first, in, out, size, padding, content_->id};
}

Tensor Network::features(TensorShape shape) {
  check_size("the number of features", product(product(shape.channels, shape.height), shape.width));
  return record(*this, {.kind = OpKind::kFeatures}, shape);
}

Tensor Network::affine(const FeatureLinear& layer) {
  check_own(*this, layer.network);
  if (content_->positions != 1) refuse("affine over sparse features needs a network of one position");
  NetworkOp op{.kind = OpKind::kSparseFeatures};
  op.first[0] = layer.first, op.count[0] = layer.in * layer.out;
  op.first[1] = layer.first + op.count[0], op.count[1] = layer.out;
  return record(*this, op, {layer.out});
}

Tensor Network::embed(const Table& table, std::size_t tokens) {
  check_own(*this, table.network);
  check_size("the number of tokens of an embedding", tokens);
  NetworkOp op{.kind = OpKind::kEmbed};
  op.first[0] = table.first, op.count[0] = table.rows * table.width;
  op.tokens = tokens;
  check_size("the width of an embedding", product(tokens, table.width));
  return record(*this, op, {tokens * table.width});
}

Tensor Network::embed(const Table& table, const Table& position) {
  check_own(*this, table.network);
  check_own(*this, position.network);
  if (position.rows != content_->positions || position.width != table.width) {
    refuse("the table of positions needs " + std::to_string(content_->positions) + " rows of " +
           std::to_string(table.width) + " numbers");
  }
  NetworkOp op{.kind = OpKind::kEmbed};
  op.first[0] = table.first, op.count[0] = table.rows * table.width;
  op.first[1] = position.first, op.count[1] = position.rows * position.width;
  op.tokens = 1;
  return record(*this, op, {table.width});
}

Tensor record(Network& network, NetworkOp op, const TensorShape& shape) {
  NetworkContent& content = network.content();
  if (content.has_loss) refuse("a network ends with its loss; record everything else before it");
  for (std::size_t i = 0; i < 2; ++i) {
    if (op.count[i] > 0 && (op.first[i] > content.dim || op.count[i] > content.dim - op.first[i]))
      refuse("an operation reads parameters that this network does not have");
  }
  for (const std::uint32_t in : op.in) {
    if (in != NetworkOp::kNone && in >= content.nodes.size())
      refuse("an operation reads a tensor that this network does not have");
  }
  op.out = static_cast<std::uint32_t>(content.nodes.size());
  content.nodes.push_back(shape);
  content.ops.push_back(op);
  return {&network, op.out};
}

std::vector<NetworkOp> ops_of_loss(const Network& network) {
  const std::vector<NetworkOp>& ops = network.content().ops;
  if (!network.content().has_loss)
    refuse("the network has no loss: end it with cross_entropy, mean_squared_error or custom_loss");
  std::vector<bool> wanted(network.content().nodes.size());
  wanted[ops.back().out] = true;
  for (std::size_t i = ops.size(); i-- > 0;) {
    if (!wanted[ops[i].out]) continue;
    for (const std::uint32_t in : ops[i].in)
      if (in != NetworkOp::kNone) wanted[in] = true;
  }
  std::vector<NetworkOp> kept;
  std::ranges::copy_if(ops, std::back_inserter(kept), [&](const NetworkOp& op) { return wanted[op.out]; });
  return kept;
}

std::vector<double> Network::start(std::uint64_t seed) const {
  std::vector<double> x(content_->dim);
  Random random(seed, "network start");
  for (const NetworkContent::Parameters& p : content_->parameters)
    for (std::size_t j = p.first; j < p.first + p.count; ++j) {
      if (p.draw == Draw::kNormal) x[j] = p.scale * random.normal();
      if (p.draw == Draw::kOne) x[j] = 1;
    }
  return x;
}

Tensor affine(const Linear& layer, const Tensor& x) {
  check_own(x.network(), layer.network);
  if (x.shape().size() != layer.in)
    refuse("a linear layer of " + std::to_string(layer.in) + " inputs was given " + text(x.shape()));
  NetworkOp op{.kind = OpKind::kAffine};
  op.in[0] = x.node();
  op.first[0] = layer.first, op.count[0] = layer.in * layer.out;
  op.first[1] = layer.first + op.count[0], op.count[1] = layer.bias ? layer.out : 0;
  return record(x.network(), op, {layer.out});
}

Tensor activation(Activation function, const Tensor& x) {
  NetworkOp op{.kind = OpKind::kActivation, .activation = function};
  op.in[0] = x.node();
  return record(x.network(), op, x.shape());
}

namespace {

Tensor pair(OpKind kind, const char* name, const Tensor& x, const Tensor& y) {
  check_same_network(x, y);
  if (x.shape() != y.shape())
    refuse(std::string(name) + " needs two equal shapes, not " + text(x.shape()) + " and " + text(y.shape()));
  NetworkOp op{.kind = kind};
  op.in[0] = x.node(), op.in[1] = y.node();
  return record(x.network(), op, x.shape());
}

Tensor pool(OpKind kind, const Tensor& x, std::size_t size) {
  const TensorShape in = x.shape();
  if (size == 0 || size > in.height || size > in.width)
    refuse("pooling squares of side " + std::to_string(size) + " do not fit " + text(in));
  if (kind == OpKind::kMaxPool && size > kMostPooled)
    refuse("max pooling of squares of side " + std::to_string(size) + "; at most " +
           std::to_string(kMostPooled));
  NetworkOp op{.kind = kind};
  op.in[0] = x.node();
  op.window = size;
  return record(x.network(), op, {in.channels, in.height / size, in.width / size});
}

}  // namespace

Tensor operator+(const Tensor& x, const Tensor& y) { return pair(OpKind::kAdd, "the sum", x, y); }
Tensor operator*(const Tensor& x, const Tensor& y) { return pair(OpKind::kMultiply, "the product", x, y); }

Tensor norm(const LayerNorm& layer, const Tensor& x) {
  check_own(x.network(), layer.network);
  if (x.shape().size() != layer.width)
    refuse("a layer norm of " + std::to_string(layer.width) + " numbers was given " + text(x.shape()));
  NetworkOp op{.kind = OpKind::kNorm, .epsilon = layer.epsilon};
  op.in[0] = x.node();
  op.first[0] = layer.first, op.count[0] = 2 * layer.width;
  return record(x.network(), op, x.shape());
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
  NetworkOp op{.kind = OpKind::kAttention, .heads = heads, .causal = causal};
  op.in[0] = key.node(), op.in[1] = query.node(), op.in[2] = value.node();
  return record(key.network(), op, {width});
}

Tensor convolve(const Convolution& layer, const Tensor& x) {
  const TensorShape in = x.shape();
  check_own(x.network(), layer.network);
  if (in.channels != layer.in)
    refuse("a convolution of " + std::to_string(layer.in) + " channels was given " + text(in));
  const std::size_t height = in.height + 2 * layer.padding, width = in.width + 2 * layer.padding;
  if (height < layer.size || width < layer.size)
    refuse("a filter of " + std::to_string(layer.size) + " x " + std::to_string(layer.size) +
           " does not fit " + text(in));
  NetworkOp op{.kind = OpKind::kConvolution, .window = layer.size, .padding = layer.padding};
  op.in[0] = x.node();
  op.first[0] = layer.first, op.count[0] = layer.out * layer.in * layer.size * layer.size;
  op.first[1] = layer.first + op.count[0], op.count[1] = layer.out;
  return record(x.network(), op, {layer.out, height - layer.size + 1, width - layer.size + 1});
}

Tensor max_pool(const Tensor& x, std::size_t size) { return pool(OpKind::kMaxPool, x, size); }
Tensor average_pool(const Tensor& x, std::size_t size) { return pool(OpKind::kAveragePool, x, size); }

Tensor mean_over_positions(const Tensor& x) {
  NetworkOp op{.kind = OpKind::kMeanOverPositions};
  op.in[0] = x.node();
  return record(x.network(), op, x.shape());
}

void cross_entropy(const Tensor& x) { record_loss({.kind = OpKind::kCrossEntropy}, x); }
void mean_squared_error(const Tensor& x) { record_loss({.kind = OpKind::kSquaredError}, x); }
void custom_loss(const Tensor& x, LossFunction function) {
  if (!function) refuse("custom_loss needs a function");
  std::vector<LossFunction>& losses = x.network().content().losses;
  record_loss({.kind = OpKind::kCustomLoss, .loss = static_cast<std::uint32_t>(losses.size())}, x);
  losses.push_back(std::move(function));
}

}  // namespace gradwire
