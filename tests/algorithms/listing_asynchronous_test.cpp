// Asynchronous algorithms against transcriptions of their listings, on the virtual clock.
#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <utility>
#include <vector>

#include "algorithms/core/sampling.h"
#include "tests/simulated/virtual_run.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_of;

using Seconds = std::function<double(ClientId, std::uint64_t)>;

// A plain list of clients that compute gradients: the point at which each works, its start time, and the
// request id that keys its batch. If several finish at once, the lowest client number comes first.
struct Workers {
  struct Work {
    Vec<double> x;
    std::uint32_t k = 0;
    std::uint64_t request_id = 0;
    double begun = 0, done = 0;
    bool rests = false;
  };
  const Federation<double>& f;
  std::uint32_t batch;
  Seconds seconds;
  std::vector<Work> work = std::vector<Work>(f.oracles.size());
  Vec<double> x = f.x0, g = Vec<double>(f.x0.size());
  std::uint32_t k = 0;
  std::uint64_t request_id = 0;
  double now = 0;

  ClientId n() const { return static_cast<ClientId>(work.size()); }
  void start(ClientId i) {
    ++request_id;
    work[i] = {x, k, request_id, now, now + seconds(i, request_id)};
  }
  // Restarts client i at its point.
  void restart(ClientId i) {
    ++request_id;
    work[i].request_id = request_id;
    work[i].begun = now;
    work[i].done = now + seconds(i, request_id);
  }
  void start_all() {
    for (ClientId i = 0; i < n(); ++i) start(i);
  }
  // Returns the client that finishes first, and stores its gradient in `g`.
  ClientId next() {
    ClientId i = 0;
    for (ClientId j = 1; j < n(); ++j)
      if (work[j].done < work[i].done) i = j;
    now = work[i].done;
    compute(i);
    return i;
  }
  void compute(ClientId i) {
    std::vector<std::uint32_t> order;
    const auto draw = draw_number(true, work[i].k, work[i].request_id);
    f.oracles[i]->loss_and_gradient(work[i].x,
                                    draw_batch(1, i, draw, 0, batch, f.oracles[i]->sample_count(), order), g);
  }
  void step(double gamma, const Vec<double>& along) {
    for (std::size_t j = 0; j < x.size(); ++j) x[j] -= gamma * along[j];
    ++k;
  }
};

// Algorithms 4 and 5 of arXiv:2501.16168.
Vec<double> ringmaster_listing(Workers at, double gamma, std::uint32_t R, bool stops, std::uint32_t replies) {
  at.start_all();
  for (std::uint32_t reply = 0; reply < replies; ++reply) {
    const ClientId i = at.next();
    if (at.k - at.work[i].k < R) at.step(gamma, at.g);
    at.start(i);
    while (stops) {
      ClientId oldest = at.n();
      for (ClientId j = 0; j < at.n(); ++j)
        if (at.k - at.work[j].k >= R &&
            (oldest == at.n() || at.work[j].request_id < at.work[oldest].request_id))
          oldest = j;
      if (oldest == at.n()) break;
      at.start(oldest);
    }
  }
  return at.x;
}

TEST(Ringmaster, MatchesPaperListing) {
  const Federation<double> federation(5, 7);
  for (const bool stops : {false, true}) {
    for (const Seconds& seconds : {Seconds(linear), Seconds(drawn)}) {
      AlgorithmSpec spec =
          spec_of("ringmaster", "identity",
                  {{"delay_threshold", "3"}, {"outdated", stops ? "stop" : "ignore"}}, "0.05");
      spec.batch = 2;
      const AsyncTrace trace =
          run_virtual(federation, federation.run_context(spec), 100, with(seconds), Evaluate::kNever);
      EXPECT_EQ(trace.model, ringmaster_listing({federation, 2, seconds}, 0.05, 3, stops, 100)) << stops;
    }
  }
}

TEST(Ringmaster, EqualsSgdOfOneClientForThresholdOneAndEqualSpeeds) {
  const Federation<double> federation(5, 7);
  const auto equal = [](ClientId, std::uint64_t) { return 1.0; };
  const auto run_context =
      federation.run_context(spec_of("ringmaster", "identity", {{"delay_threshold", "1"}}, "0.2"));
  const AsyncTrace trace = run_virtual(federation, run_context, 30, with(equal), Evaluate::kNever);
  Vec<double> x = federation.x0, g(7);
  for (int step = 0; step < 30; ++step) {
    federation.oracles[0]->loss_and_gradient(x, {}, g);
    for (std::size_t j = 0; j < 7; ++j) x[j] -= 0.2 * g[j];
  }
  EXPECT_EQ(trace.model, x);
  EXPECT_EQ(trace.seconds, 30);
  EXPECT_EQ(trace.used, std::vector<ClientId>(30, 0));
}

void expect_agree(const Vec<double>& got, const Vec<double>& want) {
  for (std::size_t j = 0; j < got.size(); ++j) EXPECT_NEAR(got[j], want[j], 1e-13) << j;
}

TEST(Asgd, MatchesPaperListing) {
  const Federation<double> federation(5, 7);
  AlgorithmSpec spec = spec_of("asgd", "identity", {}, "0.03");
  spec.batch = 2;
  for (const Seconds& seconds : {Seconds(linear), Seconds(drawn)}) {
    Workers at{federation, 2, seconds};
    at.start_all();
    for (int reply = 0; reply < 100; ++reply) {
      const ClientId i = at.next();
      at.step(0.03, at.g);
      at.start(i);
    }
    EXPECT_EQ(
        run_virtual(federation, federation.run_context(spec), 100, with(seconds), Evaluate::kNever).model,
        at.x);
  }
}

TEST(DelayAdaptiveAsgd, MatchesPaperListing) {
  const Federation<double> federation(5, 7);
  AlgorithmSpec spec = spec_of("delay_adaptive_asgd", "identity", {}, "0.03");
  spec.batch = 2;
  // The last client is so slow that its gradients are older than n steps.
  const auto seconds = [](ClientId i, std::uint64_t) { return i == 4 ? 9.5 : 1.0 + 0.125 * i; };
  Workers at{federation, 2, seconds};
  at.start_all();
  std::uint32_t longest = 0;
  for (int reply = 0; reply < 100; ++reply) {
    const ClientId i = at.next();
    const std::uint32_t delay = at.k - at.work[i].k;
    at.step(delay <= 5 ? 0.03 : 0.03 * 5 / delay, at.g);
    at.start(i);
    longest = std::max(longest, delay);
  }
  EXPECT_GT(longest, 20u);
  expect_agree(
      run_virtual(federation, federation.run_context(spec), 100, with(seconds), Evaluate::kNever).model,
      at.x);
}

// Algorithm 4 of arXiv:2305.12387; computations at an older point are ignored or stopped.
TEST(Rennala, MatchesPaperListing) {
  const Federation<double> federation(5, 7);
  for (const bool stops : {false, true}) {
    AlgorithmSpec spec =
        spec_of("rennala", "identity", {{"gradients", "3"}, {"outdated", stops ? "stop" : "ignore"}}, "0.2");
    spec.batch = 2;
    for (const Seconds& seconds : {Seconds(linear), Seconds(drawn)}) {
      Workers at{federation, 2, seconds};
      Vec<double> sum(7);
      int count = 0;
      at.start_all();
      for (int reply = 0; reply < 100; ++reply) {
        const ClientId i = at.next();
        if (at.work[i].k == at.k) {
          for (std::size_t j = 0; j < 7; ++j) sum[j] += at.g[j];
          if (++count == 3) {
            at.step(0.2 / 3, sum);
            sum.assign(7, 0);
            count = 0;
          }
        }
        at.start(i);
        std::vector<std::pair<std::uint64_t, ClientId>> older;
        for (ClientId j = 0; j < 5; ++j)
          if (at.work[j].k != at.k) older.emplace_back(at.work[j].request_id, j);
        std::sort(older.begin(), older.end());
        if (stops)
          for (const auto& [request_id, j] : older) at.start(j);
      }
      SCOPED_TRACE(stops);
      expect_agree(
          run_virtual(federation, federation.run_context(spec), 100, with(seconds), Evaluate::kNever).model,
          at.x);
    }
  }
}

// Outdated computations are stopped. Otherwise the first client would already have started again at the old
// point.
TEST(Rennala, EqualsMinibatchSgdBitForBitAtEqualSpeeds) {
  const Federation<double> federation(6, 9);
  const auto equal = [](ClientId, std::uint64_t) { return 1.0; };
  const auto run_context =
      federation.run_context(spec_of("rennala", "identity", {{"outdated", "stop"}}, "0.3"));
  const AsyncTrace trace = run_virtual(federation, run_context, 6 * 20, with(equal), Evaluate::kNever);
  EXPECT_EQ(trace.model,
            testing::run<double>(federation, federation.run_context(spec_of("gd", "identity", {}, "0.3")), 20)
                .model);
  EXPECT_EQ(trace.seconds, 20);
}

// Algorithm 1 of arXiv:2509.22860, with two tables that hold all gradients.
TEST(Ringleader, MatchesPaperListing) {
  const Federation<double> federation(5, 7);
  AlgorithmSpec spec = spec_of("ringleader", "identity", {}, "0.05");
  spec.batch = 2;
  const auto one_is_slow = [](ClientId i, std::uint64_t) { return i == 2 ? 7.25 : 1 + 0.125 * i; };
  for (const Seconds& seconds : {Seconds(linear), Seconds(drawn), Seconds(one_is_slow)}) {
    Workers at{federation, 2, seconds};
    std::vector<std::vector<Vec<double>>> table(5), next(5);
    const auto step_along_the_mean = [&] {
      Vec<double> mean(7);
      for (const auto& own : table)
        for (const Vec<double>& g : own)
          for (std::size_t j = 0; j < 7; ++j) mean[j] += g[j] / (5.0 * static_cast<double>(own.size()));
      at.step(0.05, mean);
    };
    const auto all_there = [&] {
      return std::none_of(table.begin(), table.end(), [](const auto& own) { return own.empty(); });
    };
    std::vector<bool> waits_for(5);  // phase 2: true until the client's step; phase 1: all false
    std::uint32_t oldest = 0, most = 0;
    at.start_all();
    for (int reply = 0; reply < 150; ++reply) {
      const ClientId i = at.next();
      const bool second = std::find(waits_for.begin(), waits_for.end(), true) != waits_for.end();
      if (second && !waits_for[i]) {
        next[i].push_back(at.g);
        at.restart(i);
        continue;
      }
      table[i].push_back(at.g);
      if (!second && !all_there()) {
        at.restart(i);
        continue;
      }
      if (!second) waits_for.assign(5, true);
      for (const auto& work : at.work) oldest = std::max(oldest, work.request_id == 0 ? 0 : at.k - work.k);
      most = std::max(most, static_cast<std::uint32_t>(table[i].size()));
      step_along_the_mean();
      waits_for[i] = false;
      at.start(i);
      if (std::find(waits_for.begin(), waits_for.end(), true) != waits_for.end()) continue;
      table = std::move(next);
      next.assign(5, {});
    }
    EXPECT_LE(oldest, 2 * 5 - 2u);
    EXPECT_GT(most, 1u) << "no client is faster";
    const AsyncTrace trace =
        run_virtual(federation, federation.run_context(spec), 150, with(seconds), Evaluate::kNever);
    expect_agree(trace.model, at.x);
    EXPECT_EQ(trace.seconds, at.now);
  }
}

// Ringleader averages over all clients with equal weights, so it minimises f, and not only the functions of
// the fast clients.
TEST(Ringleader, MinimisesMeanOverAllClientsAtAnySpeeds) {
  const Federation<double> federation(4, 6);
  const auto uneven = [](ClientId i, std::uint64_t) { return i == 0 ? 0.1 : 1.0 + i; };
  const auto gap = [&](const char* algorithm, const char* step) {
    const AsyncTrace trace =
        run_virtual(federation, federation.run_context(spec_of(algorithm, "identity", {}, step)), 40000,
                    with(uneven), Evaluate::kNever);
    return federation.gap(trace.model);
  };
  EXPECT_LT(gap("ringleader", "theory"), 1e-10);
  EXPECT_GT(gap("asgd", "0.005"), 1e-3) << "asgd reaches the optimum, so the test shows nothing";
}

// Algorithm 2 of arXiv:2410.04285. A computation that ends exactly at its deadline is in time.
TEST(MindFlayer, MatchesPaperListing) {
  const Federation<double> federation(4, 6);
  const std::vector<std::uint32_t> B{1, 2, 3, 1};
  const std::vector<double> t{1.25, 0.75, 1, 1.5}, p{0.75, 0.25, 0.5, 1};
  AlgorithmSpec spec = spec_of(
      "mindflayer", "identity",
      {{"trials", "1 2 3 1"}, {"allotted_seconds", "1.25 0.75 1 1.5"}, {"p", "0.75 0.25 0.5 1"}}, "0.2");
  spec.batch = 2;
  const auto in_eighths = [](ClientId i, std::uint64_t request_id) {
    return std::ceil(8 * drawn(i, request_id)) / 8;
  };
  for (const Seconds& seconds : {Seconds(drawn), Seconds(in_eighths)}) {
    Workers at{federation, 2, seconds};
    Vec<double> sum(6);
    std::vector<std::uint32_t> tried(4);
    int cuts = 0;
    at.start_all();
    for (int trial = 0; trial < 140; ++trial) {
      const auto end = [&](ClientId i) {  // the end time, and whether the work is cut
        const auto& w = at.work[i];
        return std::pair(std::min(w.done, w.begun + t[i]), w.done > w.begun + t[i]);
      };
      ClientId i = 4;
      for (ClientId j = 0; j < 4; ++j)
        if (!at.work[j].rests && (i == 4 || end(j) < end(i))) i = j;
      const auto [when, is_cut] = end(i);
      at.now = when;
      cuts += is_cut;
      if (!is_cut) {
        at.compute(i);
        for (std::size_t j = 0; j < 6; ++j) sum[j] += at.g[j];
      }
      if (++tried[i] < B[i]) {
        at.start(i);
        continue;
      }
      at.work[i].rests = true;
      if (tried != B) continue;
      at.step(0.2 / (0.75 + 0.5 + 1.5 + 1), sum);
      sum.assign(6, 0);
      tried.assign(4, 0);
      at.start_all();
    }
    EXPECT_EQ(at.k, 20u);
    EXPECT_GT(cuts, 30);
    const AsyncTrace trace =
        run_virtual(federation, federation.run_context(spec), 140, with(seconds), Evaluate::kNever);
    expect_agree(trace.model, at.x);
    EXPECT_EQ(trace.seconds, at.now);
  }
}

TEST(MindFlayer, CutsClientsThatNeverReply) {
  const Federation<double> federation(3, 5);
  const auto run_context =
      federation.run_context(spec_of("mindflayer", "identity", {{"allotted_seconds", "4"}}, "0.1"));
  const auto seconds = [](ClientId i, std::uint64_t) {
    return i == 1 ? std::numeric_limits<double>::infinity() : 1.0 + i;
  };
  const AsyncTrace trace = run_virtual(federation, run_context, 60, with(seconds));
  EXPECT_EQ(trace.outcome, Outcome::kFinished);
  EXPECT_EQ(trace.seconds, 20 * 4);
  EXPECT_LT(trace.rows.back().loss, trace.rows.front().loss);
}

// Algorithm 1 of arXiv:2106.06639 with one full local step.
TEST(FedBuff, MatchesPaperListing) {
  const Federation<double> federation(4, 6);
  const AlgorithmSpec spec =
      spec_of("fedbuff", "identity", {{"buffer", "3"}, {"local_step_size", "0.2"}}, "0.7");
  const AsyncTrace trace =
      run_virtual(federation, federation.run_context(spec), 90, with(linear), Evaluate::kNever);
  struct Work {
    Vec<double> x;
    std::uint32_t t;
    double done;
  };
  Vec<double> x = federation.x0, sum(6), g(6);
  std::vector<Work> work;
  for (ClientId i = 0; i < 4; ++i) work.push_back({x, 0, i + 1.0});
  std::uint32_t t = 0;
  for (int reply = 0, count = 0; reply < 90; ++reply) {
    std::size_t i = 0;
    for (std::size_t j = 1; j < 4; ++j)
      if (work[j].done < work[i].done) i = j;
    federation.oracles[i]->loss_and_gradient(work[i].x, {}, g);
    for (std::size_t j = 0; j < 6; ++j)
      sum[j] += 1 / std::sqrt(1.0 + (t - work[i].t)) * ((work[i].x[j] - 0.2 * g[j]) - work[i].x[j]);
    if (++count == 3) {
      for (std::size_t j = 0; j < 6; ++j) x[j] += 0.7 / 3 * sum[j];
      sum.assign(6, 0);
      count = 0;
      ++t;
    }
    work[i] = {x, t, work[i].done + (static_cast<double>(i) + 1)};
  }
  for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(trace.model[j], x[j], 1e-13);
}

}  // namespace
}  // namespace gradwire
