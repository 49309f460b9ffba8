// Asynchronous methods against transcriptions of their listings, on the virtual clock.
#include <cmath>
#include <gtest/gtest.h>
#include <utility>

#include "algorithms/support/sampling.h"
#include "tests/simulated/virtual_run.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_of;

// Algorithms 4 and 5 of arXiv:2501.16168, written out over a list of clients, each with the point at which it
// works, since when, and the ticket that keys its batch.
Vec<double> ringmaster_listing(const Federation<double>& f, double gamma, std::uint32_t R, bool stops,
                               std::uint32_t batch, std::uint32_t replies,
                               const std::function<double(ClientId, std::uint64_t)>& seconds) {
  struct Work {
    Vec<double> x;
    std::uint32_t k = 0;
    std::uint64_t ticket = 0;
    double done = 0;
  };
  const auto n = static_cast<ClientId>(f.oracles.size());
  std::vector<Work> work(n);
  Vec<double> x = f.x0, g(x.size());
  std::uint32_t k = 0;
  std::uint64_t ticket = 0;
  double now = 0;
  const auto start = [&](ClientId i) {
    ++ticket;
    work[i] = {x, k, ticket, now + seconds(i, ticket)};
  };
  for (ClientId i = 0; i < n; ++i) start(i);
  for (std::uint32_t reply = 0; reply < replies; ++reply) {
    ClientId i = 0;
    for (ClientId j = 1; j < n; ++j)
      if (work[j].done < work[i].done || (work[j].done == work[i].done && work[j].ticket < work[i].ticket))
        i = j;
    now = work[i].done;
    std::vector<std::uint32_t> order;
    const auto draw = draw_number(true, work[i].k, work[i].ticket);
    f.oracles[i]->loss_and_gradient(work[i].x,
                                    draw_batch(1, i, draw, 0, batch, f.oracles[i]->sample_count(), order), g);
    if (k - work[i].k < R) {
      for (std::size_t j = 0; j < x.size(); ++j) x[j] -= gamma * g[j];
      ++k;
    }
    start(i);
    while (stops) {
      ClientId oldest = n;
      for (ClientId j = 0; j < n; ++j)
        if (k - work[j].k >= R && (oldest == n || work[j].ticket < work[oldest].ticket)) oldest = j;
      if (oldest == n) break;
      start(oldest);
    }
  }
  return x;
}

TEST(Ringmaster, IsItsListing) {
  const Federation<double> federation(5, 7);
  for (const bool stops : {false, true}) {
    for (const auto& seconds : {std::function(linear), std::function(drawn)}) {
      AlgorithmSpec spec =
          spec_of("ringmaster", "identity",
                  {{"delay_threshold", "3"}, {"outdated", stops ? "stop" : "ignore"}}, "0.05");
      spec.batch = 2;
      const AsyncTrace trace =
          run_virtual(federation, federation.setup(spec), 100, with(seconds), Evaluate::kNever);
      EXPECT_EQ(trace.model, ringmaster_listing(federation, 0.05, 3, stops, 2, 100, seconds)) << stops;
    }
  }
}

// Algorithm 1 of arXiv:2106.06639 with one full local step.
TEST(FedBuff, IsItsListing) {
  const Federation<double> federation(4, 6);
  const AlgorithmSpec spec =
      spec_of("fedbuff", "identity", {{"buffer", "3"}, {"local_step_size", "0.2"}}, "0.7");
  const AsyncTrace trace =
      run_virtual(federation, federation.setup(spec), 90, with(linear), Evaluate::kNever);
  struct Work {
    Vec<double> x;
    std::uint32_t t;
    double done;
    int order;
  };
  Vec<double> x = federation.x0, sum(6), g(6);
  std::vector<Work> work;
  int order = 0;
  for (ClientId i = 0; i < 4; ++i) work.push_back({x, 0, i + 1.0, order++});
  std::uint32_t t = 0;
  for (int reply = 0, count = 0; reply < 90; ++reply) {
    std::size_t i = 0;
    for (std::size_t j = 1; j < 4; ++j)
      if (std::pair(work[j].done, work[j].order) < std::pair(work[i].done, work[i].order)) i = j;
    federation.oracles[i]->loss_and_gradient(work[i].x, {}, g);
    for (std::size_t j = 0; j < 6; ++j)
      sum[j] += 1 / std::sqrt(1.0 + (t - work[i].t)) * ((work[i].x[j] - 0.2 * g[j]) - work[i].x[j]);
    if (++count == 3) {
      for (std::size_t j = 0; j < 6; ++j) x[j] += 0.7 / 3 * sum[j];
      sum.assign(6, 0);
      count = 0;
      ++t;
    }
    work[i] = {x, t, work[i].done + (static_cast<double>(i) + 1), order++};
  }
  for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(trace.model[j], x[j], 1e-13);
}

}  // namespace
}  // namespace gradwire
