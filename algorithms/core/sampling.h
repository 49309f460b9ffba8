// Sampling of clients and of data samples, as pure functions of the seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/core/context.h"

namespace gradwire {

void all_clients(std::uint32_t n, std::vector<ClientId>& out);

// Returns round(share * n), but at least 1.
std::uint32_t cohort_size(std::uint32_t n, double share);

// Draws a uniform sample of cohort_size(n, share) clients, ascending. Samples of different domains are
// independent.
void sample_cohort(std::uint64_t seed, std::uint32_t round, std::uint32_t n, double share,
                   std::vector<ClientId>& out, RngDomain domain = RngDomain::kCohort);

// Returns ceil(share * count), robust against rounding: 0.07 * 100 gives 7, not 8.
std::size_t ceil_share(double share, std::size_t count);

// Adds ceil(share |cohort|) of the clients that are not in `cohort` (ascending), drawn uniformly, or all of
// them if there are fewer. The result ascends.
void add_spare_clients(std::uint64_t seed, std::uint32_t round, std::uint32_t n, double share,
                       std::vector<ClientId>& cohort);

// Selects each client i independently with probability p[i], or with p[0] if p has one element. One p uses a
// single stream that draws the gaps between selected clients, so the cost grows with the cohort, not with n.
// With several p, each client tosses its own coin. `out` ascends and may be empty.
void toss_cohort(std::uint64_t seed, std::uint32_t round, std::uint32_t n, std::span<const double> p,
                 std::vector<ClientId>& out);

// Draws `batch` samples of m, uniformly with replacement. Returns an empty batch, which means all samples, if
// `batch` is 0. The result views `work`.
Batch draw_batch(std::uint64_t seed, ClientId client, std::uint32_t round, std::uint32_t local_step,
                 std::uint32_t batch, std::size_t m, std::vector<std::uint32_t>& work);

// Draws a uniformly random order of the m samples for epoch `epoch` of a client's local training.
void shuffle_samples(std::uint64_t seed, ClientId client, std::uint32_t round, std::uint32_t epoch,
                     std::size_t m, std::vector<std::uint32_t>& out);

// Tosses one coin of round t for all clients: true with probability p.
bool shared_coin(std::uint64_t seed, std::uint32_t t, double p);

// Returns the number of tosses in round t until a coin with probability p shows heads. All clients share the
// coin. The result is at least 1 and at most kMaxTosses.
inline constexpr std::uint32_t kMaxTosses = 1'000'000;
std::uint32_t shared_geometric(std::uint64_t seed, std::uint32_t t, double p);

// A client, and how often it is among `r` of n clients drawn uniformly with replacement.
struct ClientDraws {
  ClientId client = 0;
  std::uint32_t times = 0;
};
// Draws r clients. The result ascends.
void draw_clients(std::uint64_t seed, std::uint32_t t, std::uint32_t n, std::uint32_t r,
                  std::vector<ClientDraws>& out);
// Returns how often `client` is drawn.
std::uint32_t times_drawn(std::uint64_t seed, std::uint32_t t, std::uint32_t n, std::uint32_t r,
                          ClientId client);

}  // namespace gradwire
