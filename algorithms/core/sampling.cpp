#include "algorithms/core/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace gradwire {
namespace {

// Draws the gaps between the clients that take part. A gap of k clients has probability P(k) = (1 - p)^k p
// and is drawn by inversion.
void toss_cohort_of_one_p(std::uint64_t seed, std::uint32_t round, std::uint32_t n, double p,
                          std::vector<ClientId>& out) {
  if (p >= 1) return all_clients(n, out);
  out.clear();
  if (1 - p == 1) return;  // p is too small to select a client
  RngStream stream({seed, kServerClient, round, RngDomain::kCohort});
  const double log_away = portable_log(1 - p);
  for (std::uint64_t next = 0;; ++next) {
    const double away = std::floor(portable_log(1 - stream.uniform()) / log_away);
    if (away >= static_cast<double>(n - next)) return;
    next += static_cast<std::uint64_t>(away);
    out.push_back(static_cast<ClientId>(next));
  }
}

}  // namespace

void all_clients(std::uint32_t n, std::vector<ClientId>& out) {
  out.resize(n);
  std::iota(out.begin(), out.end(), ClientId{0});
}

std::uint32_t cohort_size(std::uint32_t n, double share) {
  return static_cast<std::uint32_t>(std::clamp(std::round(share * n), 1.0, static_cast<double>(n)));
}

void sample_cohort(std::uint64_t seed, std::uint32_t round, std::uint32_t n, double share,
                   std::vector<ClientId>& out, RngDomain domain) {
  const std::uint32_t size = cohort_size(n, share);
  if (size == n) return all_clients(n, out);
  draw_subset({seed, kServerClient, round, domain}, size, n, out);
}

std::size_t ceil_share(double share, std::size_t count) {
  constexpr double kRounding = 1e-9;
  const double exact = share * static_cast<double>(count) - kRounding;
  return exact <= 0 ? 0 : static_cast<std::size_t>(std::ceil(exact));
}

void add_spare_clients(std::uint64_t seed, std::uint32_t round, std::uint32_t n, double share,
                       std::vector<ClientId>& cohort) {
  const std::uint32_t others = n - static_cast<std::uint32_t>(cohort.size());
  const double wanted = share * static_cast<double>(cohort.size());
  const std::uint32_t spares =
      wanted >= others ? others : static_cast<std::uint32_t>(ceil_share(share, cohort.size()));
  if (spares == 0) return;
  std::vector<std::uint32_t> places;  // positions among the other clients
  draw_subset({seed, kServerClient, round, RngDomain::kSpareCohort}, spares, others, places);
  std::vector<ClientId> wider;
  std::size_t member = 0, spare = 0;
  for (ClientId client = 0, place = 0; client < n; ++client) {
    if (member < cohort.size() && cohort[member] == client) {
      wider.push_back(cohort[member++]);
    } else if (spare < places.size() && places[spare] == place++) {
      wider.push_back(client);
      ++spare;
    }
  }
  cohort = std::move(wider);
}

void toss_cohort(std::uint64_t seed, std::uint32_t round, std::uint32_t n, std::span<const double> p,
                 std::vector<ClientId>& out) {
  if (p.size() == 1) return toss_cohort_of_one_p(seed, round, n, p[0], out);
  out.clear();
  for (ClientId i = 0; i < n; ++i)
    if (RngStream({seed, i, round, RngDomain::kCohort}).uniform() < p[i]) out.push_back(i);
}

Batch draw_batch(std::uint64_t seed, ClientId client, std::uint32_t round, std::uint32_t local_step,
                 std::uint32_t batch, std::size_t m, std::vector<std::uint32_t>& work) {
  if (batch == 0) return {};
  RngStream stream({seed, client, round, RngDomain::kMinibatch + local_step});
  work.resize(batch);
  for (std::uint32_t& j : work) j = stream.below(static_cast<std::uint32_t>(m));
  return work;
}

void shuffle_samples(std::uint64_t seed, ClientId client, std::uint32_t round, std::uint32_t epoch,
                     std::size_t m, std::vector<std::uint32_t>& out) {
  out.resize(m);
  std::iota(out.begin(), out.end(), 0u);
  RngStream stream({seed, client, round, RngDomain::kMinibatch + epoch});
  for (std::size_t k = m; k > 1; --k) std::swap(out[k - 1], out[stream.below(static_cast<std::uint32_t>(k))]);
}

std::uint32_t shared_geometric(std::uint64_t seed, std::uint32_t t, double p) {
  RngStream stream({seed, kServerClient, t, RngDomain::kCoin});
  std::uint32_t tosses = 1;
  while (tosses < kMaxTosses && !(stream.uniform() < p)) ++tosses;
  return tosses;
}

void draw_clients(std::uint64_t seed, std::uint32_t t, std::uint32_t n, std::uint32_t r,
                  std::vector<ClientDraws>& out) {
  RngStream stream({seed, kServerClient, t, RngDomain::kCohort});
  std::vector<ClientId> drawn(r);
  for (ClientId& i : drawn) i = stream.below(n);
  std::sort(drawn.begin(), drawn.end());
  out.clear();
  for (const ClientId i : drawn) {
    if (out.empty() || out.back().client != i) out.push_back({i, 0});
    ++out.back().times;
  }
}

std::uint32_t times_drawn(std::uint64_t seed, std::uint32_t t, std::uint32_t n, std::uint32_t r,
                          ClientId client) {
  RngStream stream({seed, kServerClient, t, RngDomain::kCohort});
  std::uint32_t times = 0;
  for (std::uint32_t k = 0; k < r; ++k) times += stream.below(n) == client;
  return times;
}

bool shared_coin(std::uint64_t seed, std::uint32_t t, double p) {
  return RngStream({seed, kServerClient, t, RngDomain::kCoin}).uniform() < p;
}

}  // namespace gradwire
