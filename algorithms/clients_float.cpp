#include "algorithms/make_half.h"

namespace gradwire {

template std::unique_ptr<ClientAlgorithm<float>> make_client(std::shared_ptr<const Setup<float>>);

}  // namespace gradwire
