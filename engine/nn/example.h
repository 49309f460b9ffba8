// One sample as a network reads it. The spans view memory that must stay valid until the call returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gradwire/network.h"

namespace gradwire {

// The input and the target of one sample. Members that the network does not read stay empty.
template <class Real>
struct Example {
  std::span<const Token> tokens;         // embed: positions x tokens per position
  std::span<const Real> features;        // features: positions x shape.size()
  std::span<const std::uint32_t> index;  // affine(FeatureLinear): the numbers of the nonzero features,
  std::span<const Real> value;           // and their values
  std::span<const Token> labels;         // cross_entropy, custom_loss: one per position
  std::span<const Real> targets;         // mean_squared_error, custom_loss: positions x channels
};

// The samples from which an oracle draws its batches.
template <class Real>
class Examples {
 public:
  virtual ~Examples() = default;
  virtual std::size_t size() const = 0;
  virtual Example<Real> operator[](std::size_t sample) const = 0;
};

}  // namespace gradwire
