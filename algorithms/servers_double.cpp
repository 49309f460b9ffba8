#include "algorithms/make_half.h"

namespace gradwire {

template std::unique_ptr<ServerHalf<double>> make_server(std::shared_ptr<const Setup<double>>);

}  // namespace gradwire
