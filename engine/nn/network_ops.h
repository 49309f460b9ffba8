// The recorded operations of a network. Programs see only include/gradwire/network.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gradwire/network.h"

namespace gradwire {

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

// One operation. It holds numbers of nodes and parameters but no pointers, so a network is a value.
struct NetworkOp {
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

struct NetworkIdentity {};

struct NetworkContent {
  enum class Draw : std::uint8_t { kNormal, kOne, kZero };
  struct Parameters {  // a range and its initial values
    std::size_t first, count;
    Draw draw;
    double scale;
  };

  NetworkId id = std::make_shared<const NetworkIdentity>();
  std::size_t positions = 1;
  std::size_t dim = 0;
  bool has_loss = false;
  KeptActivations kept = KeptActivations::kExact;
  ActivationBudget budget = {};
  std::vector<NetworkOp> ops = {};
  std::vector<TensorShape> nodes = {};  // shapes of the results
  std::vector<Parameters> parameters = {};
  std::vector<LossFunction> losses = {};
};

// Appends an operation whose result has this shape. Throws std::logic_error if it reads parameters or tensors
// that the network does not have, or if the network has its loss.
Tensor record(Network& network, NetworkOp op, const TensorShape& shape);

// Returns the operations on which the loss depends, in order; the last is the loss. Throws std::logic_error
// if the network has no loss.
std::vector<NetworkOp> ops_of_loss(const Network& network);

}  // namespace gradwire
