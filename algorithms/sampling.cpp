#include "algorithms/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gradwire {

void everyone(std::uint32_t n, std::vector<ClientId>& out) {
  out.resize(n);
  std::iota(out.begin(), out.end(), ClientId{0});
}

void sample_cohort(std::uint64_t seed, std::uint32_t round, std::uint32_t n, double share,
                   std::vector<ClientId>& out) {
  const auto size =
      static_cast<std::uint32_t>(std::clamp(std::round(share * n), 1.0, static_cast<double>(n)));
  if (size == n) return everyone(n, out);
  draw_subset({seed, kServerClient, round, Purpose::kCohort}, size, n, out);
}

Batch draw_batch(std::uint64_t seed, ClientId client, std::uint32_t round, std::uint32_t local_step,
                 std::uint32_t batch, std::size_t m, std::vector<std::uint32_t>& work) {
  if (batch == 0) return {};
  Stream stream({seed, client, round, Purpose::kMinibatch + local_step});
  work.resize(batch);
  for (std::uint32_t& j : work) j = stream.below(static_cast<std::uint32_t>(m));
  return work;
}

bool shared_coin(std::uint64_t seed, std::uint32_t t, double p) {
  return Stream({seed, kServerClient, t, Purpose::kCoin}).uniform() < p;
}

}  // namespace gradwire
