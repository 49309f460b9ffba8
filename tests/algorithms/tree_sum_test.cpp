// The order of sums: a fixed tree over the client numbers, whichever process adds which part.
#include "algorithms/core/tree_sum.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <vector>

#include "algorithms/core/vector_ops.h"
#include "base/rng_stream.h"
#include "rounds/reply_sum.h"

namespace gradwire {
namespace {

template <class Real>
using Vectors = std::map<ClientId, Vec<Real>>;

// Computes the sum of clients [first, first + count) by the definition of the tree, without a stack. `count`
// is a power of 2.
template <class Real>
Vec<Real> plain_tree(const Vectors<Real>& replies, std::uint64_t first, std::uint64_t count) {
  const auto begin = replies.lower_bound(static_cast<ClientId>(first));
  if (begin == replies.end() || begin->first >= first + count) return {};
  if (count == kClientsOfLeaf) {
    Vec<Real> sum = begin->second;
    for (auto at = std::next(begin); at != replies.end() && at->first < first + count; ++at)
      for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += at->second[j];
    return sum;
  }
  Vec<Real> left = plain_tree(replies, first, count / 2);
  const Vec<Real> right = plain_tree(replies, first + count / 2, count / 2);
  if (left.empty()) return right;
  for (std::size_t j = 0; j < right.size(); ++j) left[j] += right[j];
  return left;
}

template <class Real>
Vec<Real> plain_tree(const Vectors<Real>& replies) {
  return plain_tree<Real>(replies, 0, std::uint64_t{1} << 32);
}

template <class Real>
Vectors<Real> random_replies(std::uint32_t n, double share, std::size_t d, std::uint32_t seed) {
  RngStream stream({seed, 0, 0, RngDomain::kCohort});
  Vectors<Real> replies;
  for (ClientId i = 0; i < n; ++i) {
    if (stream.uniform() > share) continue;
    Vec<Real>& v = replies[i];
    v.resize(d);
    for (Real& x : v) x = static_cast<Real>((stream.uniform() - 0.5) * std::exp(10 * stream.uniform()));
  }
  return replies;
}

template <class Real>
std::vector<Uplink<Real>> uplinks_of(const Vectors<Real>& replies) {
  std::vector<Uplink<Real>> uplinks;
  for (const auto& [client, v] : replies) {
    Uplink<Real> up;
    up.client = client;
    up.parts = {Payload<Real>::dense(v)};
    uplinks.push_back(up);
  }
  return uplinks;
}

// Returns views that are valid as long as the uplinks.
template <class Real>
std::vector<UplinkView<Real>> views(std::span<const Uplink<Real>> uplinks) {
  return {uplinks.begin(), uplinks.end()};
}

template <class Real>
RunContext<Real> run_context_of(std::uint32_t n, std::size_t d) {
  RunContext<Real> run_context;
  run_context.n = n;
  run_context.d = d;
  return run_context;
}

template <class Real>
class TreeSums : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(TreeSums, Reals);

TYPED_TEST(TreeSums, MatchTheDefinitionOfTheTree) {
  using Real = TypeParam;
  std::uint32_t seed = 0;
  for (const std::uint32_t n : {1u, 2u, 15u, 16u, 17u, 33u, 100u, 257u, 1000u})
    for (const double share : {1.0, 0.5, 0.05}) {
      const Vectors<Real> replies = random_replies<Real>(n, share, 5, ++seed);
      TreeSum<Real> sum;
      sum.begin(5);
      for (const auto& [client, v] : replies) sum.add(client, 1, v.data());
      const View<Real> got = sum.sum();
      EXPECT_EQ(Vec<Real>(got.begin(), got.end()), plain_tree(replies)) << n << " clients, share " << share;
    }
}

TYPED_TEST(TreeSums, AcceptTheLastClientNumber) {
  using Real = TypeParam;
  Vectors<Real> replies;
  for (const ClientId client : {0u, 7u, 16u, 4095u, 65536u, 2147483647u, 2147483648u, 4294967295u})
    replies[client] = {Real(1) / Real(3 + client % 7), Real(1e7)};
  TreeSum<Real> sum;
  sum.begin(2);
  for (const auto& [client, v] : replies) sum.add(client, 1, v.data());
  const View<Real> got = sum.sum();
  EXPECT_EQ(Vec<Real>(got.begin(), got.end()), plain_tree(replies));
}

TYPED_TEST(TreeSums, ScaleEquallyWeightedRepliesOnce) {
  using Real = TypeParam;
  const std::size_t d = 3 * kTreeReals + 17;
  const Vectors<Real> replies = random_replies<Real>(70, 0.8, d, 5);
  const auto uplinks = uplinks_of(replies);
  const RunContext<Real> run_context = run_context_of<Real>(70, d);
  Vec<Real> out(d, Real(0.25));
  add_weighted<Real>(run_context, views<Real>(uplinks), 0, Real(0.7), out);
  const Vec<Real> root = plain_tree(replies);
  for (std::size_t j = 0; j < d; ++j) {
    const Real expected = Real(0.25) + Real(0.7) * (Real(1) / Real(70)) * root[j];
    ASSERT_EQ(out[j], expected) << j;
  }
}

TYPED_TEST(TreeSums, WeightEachReplyIfWeightsDiffer) {
  using Real = TypeParam;
  Vectors<Real> replies = random_replies<Real>(40, 1, 6, 6);
  const auto uplinks = uplinks_of(replies);
  RunContext<Real> run_context = run_context_of<Real>(40, 6);
  for (std::uint32_t i = 0; i < 40; ++i) run_context.weights.push_back((i + 1.0) / (40 * 41 / 2));
  Vec<Real> out(6, Real(1));
  add_weighted<Real>(run_context, views<Real>(uplinks), 0, Real(3), out);
  Vectors<Real> weighted = replies;
  for (auto& [client, v] : weighted)
    for (Real& x : v) x *= Real(3) * run_context.weight(client);
  const Vec<Real> root = plain_tree(weighted);
  for (std::size_t j = 0; j < 6; ++j) EXPECT_EQ(out[j], Real(1) + root[j]);
}

TYPED_TEST(TreeSums, DoNotDependOnTheSplitOfCoordinates) {
  using Real = TypeParam;
  const std::size_t d = 2 * kTreeReals + 100;
  const Vectors<Real> replies = random_replies<Real>(50, 0.9, d, 7);
  const auto uplinks = uplinks_of(replies);
  RunContext<Real> run_context = run_context_of<Real>(50, d);
  Vec<Real> whole(d), shared(d);
  run_context.ranges = [](std::size_t size, const auto& body) { body(0, size); };
  add_weighted<Real>(run_context, views<Real>(uplinks), 0, Real(1), whole);
  run_context.ranges = [](std::size_t size, const auto& body) {
    for (std::size_t lo = 0; lo < size; lo += 777) body(lo, std::min(size, lo + 777));
  };
  add_weighted<Real>(run_context, views<Real>(uplinks), 0, Real(1), shared);
  EXPECT_EQ(whole, shared);
}

// Threads share so many replies. The items are called in another order, as threads may do.
TYPED_TEST(TreeSums, DoNotDependOnTheSplitOfManyReplies) {
  using Real = TypeParam;
  const std::uint32_t n = 3 * kManyReplies / 2;
  for (const std::size_t d : {std::size_t{1}, std::size_t{3}, std::size_t{70}}) {
    RngStream stream({d, 0, 0, RngDomain::kCohort});
    std::vector<std::uint32_t> indices;
    for (std::uint32_t j = 0; j < d; j += 1 + j % 3) indices.push_back(j);
    std::vector<Vec<Real>> values(n);
    for (Vec<Real>& v : values) {
      v.resize(d);
      for (Real& x : v) x = static_cast<Real>((stream.uniform() - 0.5) * std::exp(10 * stream.uniform()));
    }
    // All replies are dense, sparse, a mixture, or ranges; or all but one are sparse.
    for (const char* shapes : {"d", "s", "ds", "dsr", "one"}) {
      std::vector<Uplink<Real>> uplinks;
      for (std::uint32_t i = 0; i < n; ++i) {
        if (i % 11 == 3) continue;
        Uplink<Real>& up = uplinks.emplace_back();
        up.client = i;
        Payload<Real> part = Payload<Real>::dense(values[i]);
        const std::string_view all = shapes;
        const char shape = all == "one" ? (i == 5000 ? 'd' : 's') : all[(i / 700) % all.size()];
        if (shape != 'd') part.values = View<Real>(values[i]).first(indices.size());
        if (shape == 's') part.shape = Shape::kSparse, part.indices = indices;
        if (shape == 'r') part.shape = Shape::kRange, part.first = static_cast<std::uint32_t>(i % d);
        up.parts = {part};
      }
      for (const bool weighted : {false, true}) {
        RunContext<Real> run_context = run_context_of<Real>(n, d);
        for (std::uint32_t i = 0; i < n && weighted; ++i) run_context.weights.push_back((i % 5 + 1.0) / n);
        Vec<Real> alone(d, Real(0.5)), shared = alone;
        add_weighted<Real>(run_context, views<Real>(uplinks), 0, Real(0.3), alone);
        std::size_t items = 0;
        run_context.items = [&](std::size_t size, const auto& body) {
          items += size;
          for (std::size_t k = size; k-- > 0;) body(k, k + 1);
        };
        add_weighted<Real>(run_context, views<Real>(uplinks), 0, Real(0.3), shared);
        EXPECT_GT(items, 0u);
        EXPECT_EQ(alone, shared) << shapes << ", d = " << d << (weighted ? ", weighted" : "");
      }
    }
  }
}

// Each relay serves an aligned range of clients, and sends one sum in place of their replies.
TYPED_TEST(TreeSums, DoNotChangeIfRelaysAddWholeSubtrees) {
  using Real = TypeParam;
  for (const std::uint32_t site : {16u, 32u, 64u, 128u}) {
    const Vectors<Real> replies = random_replies<Real>(300, 0.7, 9, site);
    const auto alone = uplinks_of(replies);
    const RunContext<Real> run_context = run_context_of<Real>(300, 9);
    std::vector<ReplySum<Real>> sums(300 / site + 1);
    for (const auto& up : alone) ASSERT_TRUE(sums[up.client / site].add(up));
    std::vector<Uplink<Real>> added;
    for (auto& sum : sums) added.push_back(sum.sum());
    Vec<Real> out(9, Real(2)), expected = out;
    add_weighted<Real>(run_context, views<Real>(alone), 0, Real(0.3), expected);
    add_weighted<Real>(run_context, views<Real>(added), 0, Real(0.3), out);
    EXPECT_EQ(out, expected) << "sites of " << site;
  }
}

TYPED_TEST(TreeSums, AddOtherShapesInClientOrderAfterDenseOnes) {
  using Real = TypeParam;
  const std::vector<std::uint32_t> indices = {1, 2};
  const Vec<Real> values = {Real(0.1), Real(1e5)};
  Vectors<Real> dense = random_replies<Real>(40, 0.5, 4, 9);
  Payload<Real> sparse;
  sparse.shape = Shape::kSparse;
  sparse.dim = 4;
  sparse.indices = indices;
  sparse.values = values;
  auto uplinks = uplinks_of(dense);
  // The first reply gets a sparse second summand. The last reply consists of a sparse payload only.
  Payload<Real> head = uplinks[0].parts[0];
  head.next = &sparse;
  uplinks[0].parts = {head};
  Uplink<Real> last;
  last.client = 41;
  last.parts = {sparse};
  uplinks.push_back(last);
  const RunContext<Real> run_context = run_context_of<Real>(42, 4);
  Vec<Real> out(4, Real(0.5)), expected = out;
  add_mean_of_replies<Real>(run_context, views<Real>(uplinks), 0, Real(1), out);
  const Vec<Real> root = plain_tree(dense);
  const Real scale = Real(1) / Real(uplinks.size());
  for (std::size_t j = 0; j < 4; ++j) expected[j] += scale * root[j];
  for (int summand = 0; summand < 2; ++summand)
    for (std::size_t k = 0; k < 2; ++k) expected[indices[k]] += scale * values[k];
  EXPECT_EQ(out, expected);
}

TYPED_TEST(TreeSums, AreEmptyWithoutReplies) {
  using Real = TypeParam;
  TreeSum<Real> sum;
  sum.begin(3);
  EXPECT_TRUE(sum.sum().empty());
  Vec<Real> out = {1, 2, 3};
  Uplink<Real> up;
  up.parts = {Payload<Real>::nothing(3)};
  add_weighted<Real>(run_context_of<Real>(1, 3), views<Real>({&up, 1}), 0, Real(1), out);
  EXPECT_EQ(out, (Vec<Real>{1, 2, 3}));
}

}  // namespace
}  // namespace gradwire
