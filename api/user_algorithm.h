// Adapters from a UserAlgorithm to the two parts of an algorithm.
#pragma once

#include <memory>

#include "algorithms/core/client_server.h"
#include "gradwire/algorithm.h"

namespace gradwire {

template <class Real>
std::shared_ptr<const CustomAlgorithm<Real>> adapt(std::shared_ptr<const UserAlgorithm<Real>> algorithm);

}  // namespace gradwire
