#include "algorithms/algorithm_factory.h"

namespace gradwire {

template std::unique_ptr<ServerAlgorithm<double>> make_server(std::shared_ptr<const RunContext<double>>);

}  // namespace gradwire
