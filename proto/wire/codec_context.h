// The context of the codecs of a run, the same at both ends.
#pragma once

#include "algorithms/algorithms.h"
#include "engine/oracle.h"
#include "proto/wire/codec.h"

namespace gradwire {

// REQUIRES: setup.algorithm is resolved.
template <class Real>
CodecContext codec_context(const Setup<Real>& setup, const ZstdMode& zstd) {
  CodecContext context;
  context.seed = setup.seed;
  context.dim = static_cast<std::uint32_t>(setup.d);
  context.clients = setup.n;
  context.compressor = setup.compressor;
  context.zstd = zstd;
  context.compressor_down = downlink_compressor(setup.algorithm, setup.d);
  context.max_dim = static_cast<std::uint32_t>(facts_of(setup).needs_hessian ? upper_size(setup.d) : setup.d);
  context.asynchronous = facts_of(setup).asynchronous;
  return context;
}

}  // namespace gradwire
