// One experiment over loopback, with the programs that a deployment uses: a gradwire-server and one
// gradwire-client per client, each a process of its own.
#pragma once

#include <atomic>

#include "simulation/simulate.h"

namespace gradwire {

// Starts the programs that lie beside this one, and ends them all, whatever happens. Throws
// std::runtime_error (one line that names the program that failed and what it said last).
// REQUIRES: is_networked(kind). kTls: with an identity of the server and its clients that is made for this
// run.
RunResult run_over_tcp(const Prepared& prepared, TransportKind kind, const RunObserver& observer,
                       const std::atomic<bool>& stop);

}  // namespace gradwire
