// Runs one experiment over loopback with the programs of a deployment: one gradwire-server, and one
// gradwire-client process per client.
#pragma once

#include <atomic>

#include "simulation/simulate.h"

namespace gradwire {

// Starts the programs that are in the folder of this program. They have all ended when this returns or
// throws. With kTls, makes identities of the server and the clients for this run. Throws std::runtime_error
// (one line with the program that failed and its last line). REQUIRES: is_networked(kind).
RunResult run_over_tcp(const Prepared& prepared, TransportKind kind, const RunObserver& observer,
                       const std::atomic<bool>& stop);

}  // namespace gradwire
