// Hashes of a run's input files, for its checkpoint: a resumed run must read the same bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "config/client_latency.h"
#include "engine/data/sample_hash.h"
#include "engine/data/shared_samples.h"
#include "mpi/ranks.h"
#include "simulation/prepare.h"

namespace gradwire {

// Returns the hash of all samples of all clients, in their order. It does not depend on the number of ranks.
// Generated data are not part of it. Collective if `ranks` is not null; then this rank needs only the
// samples of its own clients.
std::uint64_t hash_of_samples(const SharedSamples& samples, Ranks* ranks);

// Returns the hash of the traces of clients.latency, or 0 without traces.
std::uint64_t hash_of_traces(const ClientLatency& seconds);

// Adds the losses of a few clients at x, shape (d), and the numbers of their samples.
void add_functions(SampleHash& hash, const Functions& functions, const std::vector<double>& x);

// Returns the hash of what the program brings: the start point, the functions of a few clients there, and the
// name of the algorithm. Returns 0 if it brings none of them.
std::uint64_t hash_of_program(const Prepared& prepared);

}  // namespace gradwire
