// Who takes part, and on which samples: pure functions of the seed.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/context.h"

namespace gradwire {

void everyone(std::uint32_t n, std::vector<ClientId>& out);

// A uniform sample of round(share * n) clients, at least 1, ascending.
void sample_cohort(std::uint64_t seed, std::uint32_t round, std::uint32_t n, double share,
                   std::vector<ClientId>& out);

// `batch` samples of m, uniform with replacement; 0: empty, which means all. The result views `work`.
Batch draw_batch(std::uint64_t seed, ClientId client, std::uint32_t round, std::uint32_t local_step,
                 std::uint32_t batch, std::size_t m, std::vector<std::uint32_t>& work);

// One coin of round t for all clients: true with probability p.
bool shared_coin(std::uint64_t seed, std::uint32_t t, double p);

}  // namespace gradwire
