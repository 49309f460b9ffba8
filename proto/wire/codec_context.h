// The codec context of a run. Both ends make the same one.
#pragma once

#include "algorithms/algorithms.h"
#include "gradwire/oracle.h"
#include "proto/wire/codec.h"

namespace gradwire {

// REQUIRES: run_context.algorithm is resolved.
template <class Real>
CodecContext codec_context(const RunContext<Real>& run_context, const ZstdMode& zstd) {
  CodecContext context;
  context.seed = run_context.seed;
  context.dim = static_cast<std::uint32_t>(run_context.d);
  context.clients = run_context.n;
  context.compressor = run_context.compressor;
  context.zstd = zstd;
  context.compressor_down = downlink_compressor(run_context.algorithm, run_context.d);
  context.max_dim = static_cast<std::uint32_t>(
      traits_of(run_context).needs_hessian ? upper_size(run_context.d) : run_context.d);
  context.asynchronous = traits_of(run_context).asynchronous;
  return context;
}

}  // namespace gradwire
