// The list of methods: the one place to add a name.
#pragma once

#include "algorithms/dcgd.h"
#include "algorithms/diana.h"
#include "algorithms/ef21.h"
#include "algorithms/fedavg.h"
#include "algorithms/gd.h"
#include "algorithms/marina.h"

namespace gradwire {

template <template <class> class... M>
struct MethodList {};

using AllMethods = MethodList<Gd, Dcgd, FedAvg, Diana, Marina, Ef21>;

}  // namespace gradwire
