// Random architectures compared with the twin: chains, residual blocks, several inputs, images, tensors that
// are read several times or never, and shared parameters.
#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/engine/nn/network_checks.h"
#include "tests/engine/nn/network_zoo.h"

namespace gradwire {
namespace {

class Architect {
 public:
  explicit Architect(std::uint64_t seed) : random_(seed, "architect") {}

  Network build() {
    const std::size_t positions = chance(0.4) ? 1 : one_of({2, 3, 4, 5, 7, 8, 9, 12});
    Network net(positions);
    net_ = &net;
    inputs();
    const std::size_t operations = 3 + random_.below(12);
    while (net.content().ops.size() < operations) step();
    finish();
    return net;
  }

 private:
  bool chance(double share) { return random_.uniform() < share; }
  std::size_t one_of(std::initializer_list<std::size_t> choices) {
    return choices.begin()[random_.below(choices.size())];
  }
  std::size_t width() { return one_of({1, 2, 3, 4, 6, 8, 9, 12, 16, 17}); }

  // Returns any earlier tensor; later ones are more likely.
  Tensor some() { return tensors_[std::max(random_.below(tensors_.size()), random_.below(tensors_.size()))]; }
  void add(Tensor x) { tensors_.push_back(x); }
  static bool is_image(const Tensor& x) { return x.shape().height > 1 || x.shape().width > 1; }

  // Returns the last image so far, or `x` if none exists.
  Tensor some_image(const Tensor& x) const {
    const auto last = std::find_if(tensors_.rbegin(), tensors_.rend(), is_image);
    return last == tensors_.rend() ? x : *last;
  }

  // Returns an intermediate tensor, which others may also read.
  Tensor passing(Tensor x) {
    if (chance(0.3)) add(x);
    return x;
  }
  // Returns `x`, or an affine map of it, with `size` numbers.
  Tensor sized(Tensor x, std::size_t size) {
    if (x.shape().size() == size && chance(0.7)) return x;
    return passing(affine(linear(x.shape().size(), size), x));
  }
  // Returns a new layer, or an existing one of these sizes.
  Linear linear(std::size_t in, std::size_t out) {
    auto& known = layers_[{in, out}];
    if (!known.empty() && chance(0.3)) return known[random_.below(known.size())];
    known.push_back(net_->linear(in, out, chance(0.7)));
    return known.back();
  }

  void inputs() {
    const bool image = chance(0.5), words = chance(0.5), sparse = net_->positions() == 1 && chance(0.3);
    if (image) {
      add(net_->features(TensorShape{one_of({1, 2, 3}), one_of({4, 5, 7}), one_of({4, 6, 9})}));
    } else if (!words || chance(0.5)) {
      add(net_->features(width()));
    }
    if (words && chance(0.5)) {
      const std::size_t columns = width();
      const Table letters = net_->table(5, columns), places = net_->table(net_->positions(), columns);
      add(net_->embed(letters, places));
    } else if (words) {
      const Table table = net_->table(7, one_of({1, 2, 3, 5, 8}));
      const std::size_t tokens = one_of({1, 2, 3, 5});
      add(net_->embed(table, tokens));
      if (chance(0.3)) add(net_->embed(table, tokens));
    }
    if (sparse) add(net_->affine(net_->feature_linear(one_of({3, 10, 40}), width())));
  }

  void step() {
    const Tensor x = some();
    switch (random_.below(11)) {
      case 0:
      case 1: return add(sized(x, width()));
      case 2:
      case 3: return add(activation(static_cast<Activation>(random_.below(4)), x));
      case 4: return join(x, false);
      case 5: return join(x, true);
      case 6: return add(norm(net_->layer_norm(x.shape().size(), chance(0.5) ? 1 : 0.1), x));
      case 7: return attend(x);
      case 8:
      case 9: return convolve_or_pool(some_image(x));
      default: return chance(0.4) ? add(mean_over_positions(x)) : block(x);
    }
  }

  void join(const Tensor& x, bool product) {
    Tensor y = some();
    if (y.shape() != x.shape() && is_image(x)) y = x;
    if (y.shape() != x.shape()) y = passing(affine(linear(y.shape().size(), x.shape().size()), y));
    if (product) return add(sigmoid(x) * y);  // bounded on one side, because chains of products explode
    add(chance(0.5) ? x + y : y + x);
  }

  void attend(const Tensor& x) {
    const std::size_t heads = one_of({1, 2, 3}), size = heads * one_of({1, 2, 3, 4});
    const Tensor key = sized(x, size), query = sized(chance(0.5) ? x : some(), size),
                 value = chance(0.2) ? key : sized(x, size);
    const Linear back = linear(size, width());
    add(affine(back, attention(key, query, value, heads, chance(0.6))));
  }

  void convolve_or_pool(const Tensor& x) {
    if (!is_image(x)) return block(x);
    const std::size_t least = std::min(x.shape().height, x.shape().width);
    if (chance(0.5) && least >= 2) {
      const std::size_t size = std::min(least, one_of({2, 3}));
      return add(chance(0.5) ? max_pool(x, size) : average_pool(x, size));
    }
    const std::size_t size = std::min(least, one_of({1, 2, 3}));
    const Convolution layer =
        net_->convolution(x.shape().channels, one_of({1, 2, 3, 5}), size, random_.below(size));
    const Tensor y = convolve(layer, x);
    add(chance(0.5) ? activation(static_cast<Activation>(random_.below(4)), y) : y);
  }

  // Adds x + f(norm x), as in a transformer.
  void block(const Tensor& x) {
    const std::size_t size = x.shape().size(), inner = width();
    const Tensor u = passing(norm(net_->layer_norm(size, 0.1), x));
    const Tensor f = passing(affine(linear(inner, size), gelu(passing(affine(linear(size, inner), u)))));
    if (!is_image(x)) add(chance(0.5) ? x + f : f + x);
  }

  void finish() {
    const Tensor y = chance(0.8) ? affine(linear(tensors_.back().shape().size(), one_of({2, 3, 5, 10, 19})),
                                          tensors_.back())
                                 : tensors_.back();
    const std::size_t loss = random_.below(4);
    if (loss == 0) mean_squared_error(y);
    if (loss == 1) custom_loss(y, log_cosh_loss);
    if (loss >= 2) cross_entropy(y);
  }

  Random random_;
  Network* net_ = nullptr;
  std::vector<Tensor> tensors_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Linear>> layers_;
};

std::string describe(const Network& net) {
  std::string text = std::to_string(net.positions()) + " positions:";
  for (const NetworkOp& op : net.content().ops) {
    text += " " + std::to_string(static_cast<int>(op.kind)) + "(";
    for (const std::uint32_t in : op.in)
      if (in != NetworkOp::kNone) text += std::to_string(in) + " ";
    text += ")x" + std::to_string(net.content().nodes[op.out].size());
  }
  return text;
}

constexpr std::uint64_t kNetworks = 100;

TEST(RandomNetworks, AgreeWithTwin) {
  std::map<OpKind, int> seen;
  for (std::uint64_t seed = 0; seed < kNetworks; ++seed) {
    const Network net = Architect(seed).build();
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + describe(net));
    for (const NetworkOp& op : net.content().ops) ++seen[op.kind];
    expect_agrees(net, {.counts = {1, 2, 5},
                        .micro_batches = {0, 1, 1 + seed % 5},
                        .seed = seed,
                        .double_tolerance = 1e-10});
    if (::testing::Test::HasFailure()) break;
  }
  for (int kind = 0; kind <= static_cast<int>(OpKind::kCustomLoss); ++kind)
    EXPECT_GE(seen[static_cast<OpKind>(kind)], 4) << "operation " << kind;
}

}  // namespace
}  // namespace gradwire
