// Who takes part, and on which samples: pure functions of the seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/core/context.h"

namespace gradwire {

void everyone(std::uint32_t n, std::vector<ClientId>& out);

// round(share * n), at least 1.
std::uint32_t cohort_size(std::uint32_t n, double share);

// A uniform sample of cohort_size(n, share) clients, ascending. Samples for different purposes are
// independent.
void sample_cohort(std::uint64_t seed, std::uint32_t round, std::uint32_t n, double share,
                   std::vector<ClientId>& out, RngDomain domain = RngDomain::kCohort);

// ceil(share * count), robust against rounding: 0.07 * 100 gives 7, not 8.
std::size_t ceil_share(double share, std::size_t count);

// Adds ceil(share |cohort|) of the clients that are not in `cohort` (ascending), drawn uniformly, or all of
// them if there are fewer. The result ascends.
void add_spare_clients(std::uint64_t seed, std::uint32_t round, std::uint32_t n, double share,
                       std::vector<ClientId>& cohort);

// Each client i takes part with probability p[i], or all with p[0], independently. One p: a single stream
// draws how many clients stay away before the next one takes part, so the work is that of the cohort.
// Several: each client has a coin of its own. `out` ascends and may be empty.
void toss_cohort(std::uint64_t seed, std::uint32_t round, std::uint32_t n, std::span<const double> p,
                 std::vector<ClientId>& out);

// `batch` samples of m, uniform with replacement; 0: empty, which means all. The result views `work`.
Batch draw_batch(std::uint64_t seed, ClientId client, std::uint32_t round, std::uint32_t local_step,
                 std::uint32_t batch, std::size_t m, std::vector<std::uint32_t>& work);

// A uniformly random order of the m samples, for epoch `epoch` of a client's local training.
void shuffle_samples(std::uint64_t seed, ClientId client, std::uint32_t round, std::uint32_t epoch,
                     std::size_t m, std::vector<std::uint32_t>& out);

// One coin of round t for all clients: true with probability p.
bool shared_coin(std::uint64_t seed, std::uint32_t t, double p);

// How many tosses it takes in round t until a coin with probability p shows heads, one coin for all clients:
// at least 1, at most kMaxTosses.
inline constexpr std::uint32_t kMaxTosses = 1'000'000;
std::uint32_t shared_geometric(std::uint64_t seed, std::uint32_t t, double p);

// `r` clients of n, uniform with replacement: how often each was drawn.
struct ClientDraws {
  ClientId client = 0;
  std::uint32_t times = 0;
};
// Ascending clients.
void draw_clients(std::uint64_t seed, std::uint32_t t, std::uint32_t n, std::uint32_t r,
                  std::vector<ClientDraws>& out);
// How often `client` is among them.
std::uint32_t times_drawn(std::uint64_t seed, std::uint32_t t, std::uint32_t n, std::uint32_t r,
                          ClientId client);

}  // namespace gradwire
