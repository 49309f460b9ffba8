// An adapter from a UserCompressor to a compressor of the library.
#pragma once

#include <memory>
#include <string>

#include "compressors/custom_compressor.h"
#include "gradwire/compressor.h"

namespace gradwire {

// The adapter works in the precision of `compressor` alone.
template <class Real>
std::shared_ptr<const CompressorInterface> adapt(std::shared_ptr<const UserCompressor<Real>> compressor);

}  // namespace gradwire
