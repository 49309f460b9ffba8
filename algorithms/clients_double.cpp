#include "algorithms/algorithm_factory.h"

namespace gradwire {

template std::unique_ptr<ClientAlgorithm<double>> make_client(std::shared_ptr<const RunContext<double>>);

}  // namespace gradwire
