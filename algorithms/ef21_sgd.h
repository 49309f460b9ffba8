// EF21-SGD — Fatkhullin, Sokolov, Gorbunov, Li, Richtárik, arXiv:2110.03294, Algorithm 2: EF21 (ef21.h) with
// the gradient of a fresh minibatch, ∇f_i(x^t; ξ_i^t), in place of ∇f_i(x^t). The algorithm needs large
// batches, because its error does not vanish with the step size.
#pragma once

#include "algorithms/support/ef21_core.h"

namespace gradwire {

struct Ef21SgdParams : Ef21CoreParams {
  static constexpr AlgorithmTraits traits{
      .name = "ef21_sgd",
      .summary = "EF21 on minibatch gradients",
      .reference = "Fatkhullin et al., arXiv:2110.03294",
      .compressor_class = CompressorClass::kContractive,
      .strict = true,
      .stochastic = true,
      .client_state = ClientState::kMirrored,
      .adds_replies = true,
  };
  void resolve(const Theory& theory, Warnings& warnings) {
    resolve_step(theory, warnings, [&] { return ef21_step(theory); });
  }
};

template <class Real>
struct Ef21Sgd {
  using Params = Ef21SgdParams;
  using Client = Ef21CoreClient<Real>;
  using Server = Ef21CoreServer<Real>;
};

}  // namespace gradwire
