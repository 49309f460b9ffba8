#include "algorithms/algorithm_factory.h"

namespace gradwire {

template std::unique_ptr<ClientAlgorithm<float>> make_client(std::shared_ptr<const RunContext<float>>);

}  // namespace gradwire
