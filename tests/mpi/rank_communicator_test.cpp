// Tests that sums over the clients of several ranks have the same bits as in one process. The ranks are
// threads here.
#include "mpi/rank_communicator.h"

#include <cmath>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>

#include "algorithms/core/vector_ops.h"
#include "base/rng_stream.h"
#include "tests/mpi/thread_ranks.h"

namespace gradwire {
namespace {

using testing::on_ranks;

template <class Real>
struct Message {
  ClientId client;
  Vec<Real> values;
  std::vector<std::uint32_t> indices;
  Payload<Real> part;
};

enum class Kinds { kDense, kSparse, kMixed, kOneDense };

// Returns one message of each client in a random share of n clients. The vectors have length d.
template <class Real>
std::vector<Message<Real>> messages(std::uint32_t n, std::size_t d, double share, Kinds kinds,
                                    std::uint32_t seed) {
  RngStream stream({seed, 0, 0, RngDomain::kCohort});
  std::vector<Message<Real>> all;
  for (ClientId i = 0; i < n; ++i) {
    if (i > 0 && stream.uniform() > share) continue;
    Message<Real>& m = all.emplace_back();
    m.client = i;
    const bool dense = kinds == Kinds::kDense || (kinds == Kinds::kOneDense && i == 0) ||
                       (kinds == Kinds::kMixed && stream.uniform() < 0.5);
    if (!dense && kinds != Kinds::kSparse && stream.uniform() < 0.4) {  // may wrap around the end
      m.part.shape = Shape::kRange;
      m.part.first = static_cast<std::uint32_t>(stream.uniform() * double(d));
      m.values.resize(1 + static_cast<std::size_t>(stream.uniform() * double(d - 1)));
    } else if (!dense) {
      m.part.shape = Shape::kSparse;
      for (std::uint32_t j = 0; j < d; ++j)
        if (stream.uniform() < 0.2) m.indices.push_back(j);
      m.values.resize(m.indices.size());
    } else {
      m.part.shape = Shape::kDense;
      m.values.resize(d);
    }
    for (Real& x : m.values) x = Real((stream.uniform() - 0.5) * std::exp(6 * stream.uniform()));
    m.part.dim = static_cast<std::uint32_t>(d);
  }
  for (Message<Real>& m : all) {
    m.part.values = m.values;
    m.part.indices = m.indices;
  }
  return all;
}

// The view of one process: all replies, with only its own clients' parts.
template <class Real>
struct Seen {
  std::vector<Uplink<Real>> sent;
  std::vector<UplinkView<Real>> replies;
  Seen(const std::vector<Message<Real>>& all, ClientRange mine) {
    for (const Message<Real>& m : all) {
      Uplink<Real>& up = sent.emplace_back();
      up.client = m.client;
      up.parts = {mine.has(m.client) ? m.part : Payload<Real>::nothing(m.part.dim)};
    }
    replies.assign(sent.begin(), sent.end());
  }
};

template <class Real>
RunContext<Real> run_context_of(std::uint32_t n, std::size_t d, bool weighted) {
  RunContext<Real> run_context;
  run_context.n = n;
  run_context.d = d;
  if (weighted)
    for (std::uint32_t i = 0; i < n; ++i) run_context.weights.push_back((i + 1.0) / (n * (n + 1.0) / 2));
  return run_context;
}

template <class Real>
class RankCommunicators : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RankCommunicators, Reals);

TYPED_TEST(RankCommunicators, GiveTheSumOfOneProcess) {
  using Real = TypeParam;
  std::uint32_t seed = 0;
  for (const std::uint32_t n : {1u, 3u, 16u, 20u, 33u, 100u, 700u})
    for (const std::size_t d : {5u, 700u, 9000u})
      for (const Kinds kinds : {Kinds::kDense, Kinds::kSparse, Kinds::kMixed, Kinds::kOneDense}) {
        if (n * d > 1'000'000) continue;
        const bool weighted = ++seed % 2 == 0;
        const auto all = messages<Real>(n, d, seed % 3 == 0 ? 0.3 : 1.0, kinds, seed);
        const RunContext<Real> alone = run_context_of<Real>(n, d, weighted);
        const Seen<Real> seen(all, {0, n});
        Vec<Real> expected(d, Real(0.25));
        add_average_of_replies<Real>(alone, seen.replies, 0, Real(0.7), expected);
        for (const unsigned count : {1u, 2u, 3u, 4u})
          on_ranks(count, [&](std::shared_ptr<Ranks> ranks) {
            RunContext<Real> run_context = alone;
            run_context.communicator = std::make_shared<RankCommunicator<Real>>(ranks, n);
            run_context.ranges = [](std::size_t size, const auto& body) {
              for (std::size_t lo = 0; lo < size; lo += 777) body(lo, std::min(size, lo + 777));
            };
            const Seen<Real> mine(all, run_context.mine());
            Vec<Real> out(d, Real(0.25));
            add_average_of_replies<Real>(run_context, mine.replies, 0, Real(0.7), out);
            EXPECT_EQ(out, expected) << n << " clients, d = " << d << ", " << count << " ranks, kinds "
                                     << int(kinds);
          });
      }
}

TYPED_TEST(RankCommunicators, AddUpTreesOfNumbers) {
  using Real = TypeParam;
  for (const std::uint32_t n : {1u, 5u, 40u, 1000u})
    for (const std::size_t size : {2u, 600u}) {
      const auto fill = [&](TreeSum<double>& tree, ClientRange clients) {
        Vec<double> v(size);
        for (ClientId i = clients.first; i < clients.end; ++i) {
          if (i % 7 == 3) continue;
          for (std::size_t j = 0; j < size; ++j) v[j] = 1.0 / (1 + i + double(j));
          tree.add(i, 0.3, v.data());
        }
      };
      TreeSum<double> whole;
      whole.begin(size);
      fill(whole, {0, n});
      const View<double> root = whole.sum();
      for (const unsigned count : {1u, 2u, 3u, 4u})
        on_ranks(count, [&](std::shared_ptr<Ranks> ranks) {
          RankCommunicator<Real> communicator(ranks, n);
          TreeSum<double> tree;
          tree.begin_part(size, communicator.mine(), n);
          fill(tree, communicator.mine());
          EXPECT_EQ(communicator.sum(tree), Vec<double>(root.begin(), root.end()))
              << n << ", " << count << " ranks";
        });
    }
}

TYPED_TEST(RankCommunicators, GatherInTheOrderOfClients) {
  on_ranks(3, [&](std::shared_ptr<Ranks> ranks) {
    RankCommunicator<TypeParam> communicator(ranks, 20);
    std::vector<double> mine;
    for (ClientId i = communicator.mine().first; i < communicator.mine().end; ++i) mine.push_back(i);
    std::vector<double> expected(20);
    std::iota(expected.begin(), expected.end(), 0.0);
    EXPECT_EQ(communicator.gather(mine), expected);
  });
}

TEST(ClientsOfRanks, AreAllClientsOnceInSharesOfAboutEqualSize) {
  for (const std::uint32_t n : {1u, 2u, 16u, 20u, 100u, 1000u, 1'000'000u})
    for (const unsigned count : {1u, 2u, 3u, 7u, 64u}) {
      ClientId next = 0;
      for (unsigned r = 0; r < count; ++r) {
        const ClientRange range = clients_of_rank(n, r, count);
        EXPECT_EQ(range.first, next);
        EXPECT_LE(range.size(), n / double(count) * 1.125 + 1) << n << " clients, " << count << " ranks";
        next = range.end;
      }
      EXPECT_EQ(next, n);
    }
}

TEST(ClientsOfRanks, DivideNoLeafIfThereAreManyClients) {
  on_ranks(3, [](std::shared_ptr<Ranks> ranks) {
    EXPECT_TRUE(RankCommunicator<double>(ranks, 1000).has_whole_leaves());
    EXPECT_FALSE(RankCommunicator<double>(ranks, 20).has_whole_leaves());
  });
}

}  // namespace
}  // namespace gradwire
