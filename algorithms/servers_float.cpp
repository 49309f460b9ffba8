#include "algorithms/algorithm_factory.h"

namespace gradwire {

template std::unique_ptr<ServerAlgorithm<float>> make_server(std::shared_ptr<const RunContext<float>>);

}  // namespace gradwire
