// Hashes of what a run reads, for its checkpoint: a run that is resumed must read the same.
#pragma once

#include <cstdint>

#include "config/client_seconds.h"
#include "engine/data/shared_samples.h"
#include "mpi/ranks.h"

namespace gradwire {

// Returns the hash of all samples of all clients, in their order; it does not depend on the number of ranks.
// Data that are made, not read, count as nothing. Collective where `ranks` is not null; then this rank needs
// the samples of its own clients alone.
std::uint64_t hash_of_samples(const SharedSamples& samples, Ranks* ranks);

// Returns the hash of the traces of clients.seconds; 0 if there are none.
std::uint64_t hash_of_traces(const ClientSeconds& seconds);

}  // namespace gradwire
