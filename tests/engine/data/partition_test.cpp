#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/data/readers/source.h"
#include "tests/support/data_files.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

using Rows = std::vector<std::uint32_t>;

constexpr PartitionKind kAllKinds[] = {PartitionKind::kContiguous, PartitionKind::kIid,
                                       PartitionKind::kByLabel, PartitionKind::kDirichlet};

// Returns `rows` samples with one feature, the row number plus 1, and labels 0 .. classes-1 in random order.
Dataset labelled(std::size_t rows, std::size_t classes, std::uint64_t seed = 1) {
  Dataset data;
  data.columns = 1;
  Random random(seed, "labels");
  for (std::size_t r = 0; r < rows; ++r) {
    data.label.push_back(static_cast<double>(random.below(classes)));
    data.column.push_back(0);
    data.value.push_back(static_cast<double>(r + 1));
    data.row_start.push_back(r + 1);
  }
  return data;
}

struct Lists {
  std::vector<Rows> train, test;  // one list per client
};
std::vector<Rows> lists_of(const RowLists& flat) {
  std::vector<Rows> lists;
  for (std::size_t i = 0; i < flat.size(); ++i) lists.emplace_back(flat[i].begin(), flat[i].end());
  return lists;
}
Lists divide(const Dataset& data, const SplitSpec& spec) {
  const Split split = split_rows(data, spec);
  return {lists_of(split.train), lists_of(split.test)};
}

// Returns the entries of all lists, sorted.
Rows joined(const std::vector<Rows>& lists) {
  Rows all;
  for (const Rows& list : lists) all.insert(all.end(), list.begin(), list.end());
  std::sort(all.begin(), all.end());
  return all;
}

bool has_duplicates(const Rows& sorted) {
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

// Returns the share of the most common label in each client, averaged over clients. It is 1 if each client
// has one label.
double purity(const Dataset& data, const std::vector<Rows>& clients, std::size_t classes) {
  double sum = 0;
  for (const Rows& rows : clients) {
    std::vector<double> count(classes);
    for (const std::uint32_t r : rows) ++count[static_cast<std::size_t>(data.label[r])];
    sum += *std::max_element(count.begin(), count.end()) / static_cast<double>(rows.size());
  }
  return sum / static_cast<double>(clients.size());
}

TEST(Partition, ContiguousGivesTheRemainderToTheFirstClients) {
  const Lists split = divide(labelled(23, 3), {.partition = PartitionKind::kContiguous, .clients = 5});
  EXPECT_EQ(split.train, (std::vector<Rows>{
                             {0, 1, 2, 3, 4},
                             {5, 6, 7, 8, 9},
                             {10, 11, 12, 13, 14},
                             {15, 16, 17, 18},
                             {19, 20, 21, 22},
                         }));
  ASSERT_EQ(split.test.size(), 5u);
  EXPECT_TRUE(joined(split.test).empty());
}

TEST(Partition, UsesEveryRowInPartsThatDifferByOneUnlessDirichlet) {
  const Dataset data = labelled(103, 4);
  for (const PartitionKind kind : kAllKinds) {
    const Lists split = divide(data, {.partition = kind, .clients = 10, .seed = 5});
    const Rows all = joined(split.train);
    EXPECT_FALSE(has_duplicates(all));
    EXPECT_EQ(all.size(), 103u);
    for (std::size_t i = 0; i < 10; ++i) {
      const Rows& rows = split.train[i];
      EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
      EXPECT_FALSE(rows.empty());
      EXPECT_TRUE(rows.size() == (i < 3 ? 11 : 10) || kind == PartitionKind::kDirichlet);
    }
  }
}

TEST(Partition, MakesEqualPartsForReplicasAndReportsUnusedSamples) {
  const Dataset data = labelled(23, 4);
  const SplitSpec spec{.clients = 5, .replication = {.count = 2}};
  const Split split = split_rows(data, spec);
  EXPECT_EQ(split.left_out, 3u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(split.train[i].size(), 4u);
  const SharedSamples shared = share_samples(data, nullptr, spec);
  const std::vector<std::string> warnings = {
      "clients.replication needs equal parts: 3 of 23 training samples are unused, as the number of samples "
      "is "
      "not a multiple of 5 "
      "clients"};
  EXPECT_EQ(shared.warnings, warnings);
  EXPECT_EQ(shared.part(2).warnings, warnings);
  EXPECT_TRUE(share_samples(labelled(20, 4), nullptr, spec).warnings.empty());
  EXPECT_TRUE(share_samples(data, nullptr, {.clients = 5}).warnings.empty());
}

TEST(Partition, DependsOnlyOnTheSeed) {
  const Dataset data = labelled(200, 4);
  for (const PartitionKind kind : kAllKinds) {
    const SplitSpec spec{.partition = kind, .clients = 7, .test_share = 0.2, .seed = 5};
    SplitSpec other = spec;
    other.seed = 6;
    EXPECT_EQ(divide(data, spec).train, divide(data, spec).train);
    EXPECT_EQ(divide(data, spec).test, divide(data, spec).test);
    EXPECT_NE(divide(data, spec).train, divide(data, other).train);
    EXPECT_NE(divide(data, spec).test, divide(data, other).test);
  }
}

TEST(Partition, HoldsOutTheSameRowsForAllKindsAndCounts) {
  const Dataset data = labelled(200, 4);
  const Rows expected = joined(divide(data, {.clients = 1, .test_share = 0.3}).test);
  EXPECT_EQ(expected.size(), 60u);
  for (const PartitionKind kind : kAllKinds) {
    EXPECT_EQ(joined(divide(data, {.partition = kind, .clients = 9, .test_share = 0.3}).test), expected);
  }
}

TEST(Partition, HoldsOutTheRoundedShareAndSharesItOutInOrder) {
  const Dataset data = labelled(103, 4);
  for (const PartitionKind kind : kAllKinds) {
    const Lists split = divide(data, {.partition = kind, .clients = 10, .test_share = 0.25});
    Rows in_order;
    for (const Rows& rows : split.test) {
      EXPECT_TRUE(rows.size() == 2 || rows.size() == 3);
      in_order.insert(in_order.end(), rows.begin(), rows.end());
    }
    EXPECT_EQ(in_order.size(), 26u);  // round(25.75)
    EXPECT_TRUE(std::is_sorted(in_order.begin(), in_order.end()));
    Rows both = joined(split.train);
    both.insert(both.end(), in_order.begin(), in_order.end());
    std::sort(both.begin(), both.end());
    EXPECT_EQ(both.size(), 103u);
    EXPECT_FALSE(has_duplicates(both));
  }
}

TEST(Partition, IidMixesAndByLabelSeparates) {
  const Dataset data = labelled(2000, 5);
  const auto purity_of = [&](PartitionKind kind) {
    return purity(data, divide(data, {.partition = kind, .clients = 20}).train, 5);
  };
  EXPECT_LT(purity_of(PartitionKind::kIid), 0.35);
  EXPECT_GT(purity_of(PartitionKind::kByLabel), 0.9);
}

TEST(Partition, ByLabelGivesAscendingBlocksOfLabels) {
  const Dataset data = labelled(100, 5);
  const Lists split = divide(data, {.partition = PartitionKind::kByLabel, .clients = 10});
  double previous = 0;
  for (const Rows& rows : split.train) {
    std::vector<double> labels;
    for (const std::uint32_t r : rows) labels.push_back(data.label[r]);
    EXPECT_GE(*std::min_element(labels.begin(), labels.end()), previous);
    previous = *std::max_element(labels.begin(), labels.end());
  }
}

TEST(Partition, DirichletRangesFromOneClassEachToEqualClients) {
  const Dataset data = labelled(5000, 5);
  const auto purity_of = [&](double alpha) {
    const SplitSpec spec{.partition = PartitionKind::kDirichlet, .dirichlet_alpha = alpha, .clients = 5};
    return purity(data, divide(data, spec).train, 5);
  };
  EXPECT_GT(purity_of(0.01), 0.8);
  EXPECT_LT(purity_of(1e5), 0.26);
  EXPECT_GT(purity_of(0.1), purity_of(10));
}

TEST(Partition, DirichletSharesHaveTheVarianceOfTheirDistribution) {
  // With one class and two clients, the share of the first is Beta(alpha, alpha), whose variance is
  // 1 / (4 (2 alpha + 1)).
  const Dataset data = labelled(1000, 1);
  for (const double alpha : {0.1, 0.5, 1.0, 3.0, 50.0}) {
    constexpr int kSeeds = scaled(3000);
    double mean = 0, square = 0;
    for (int seed = 0; seed < kSeeds; ++seed) {
      const Lists split = divide(data, {.partition = PartitionKind::kDirichlet,
                                        .dirichlet_alpha = alpha,
                                        .clients = 2,
                                        .seed = static_cast<std::uint64_t>(seed)});
      const double share = static_cast<double>(split.train[0].size()) / 1000;
      mean += share / kSeeds;
      square += (share - 0.5) * (share - 0.5) / kSeeds;
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(mean, 0.5, 4 * std::sqrt(variance / kSeeds)) << alpha;
    EXPECT_NEAR(square, variance, 5.5 / std::sqrt(kSeeds) * variance) << alpha;
  }
}

TEST(Partition, DirichletGivesEveryClientARowEvenWithFewRows) {
  for (const double alpha : {1e-6, 0.01, 0.3, 1.0, 1e6}) {
    for (const std::uint32_t clients : {1u, 7u, 99u, 100u}) {
      const Dataset data = labelled(100, 3);
      const Lists split = divide(
          data,
          {.partition = PartitionKind::kDirichlet, .dirichlet_alpha = alpha, .clients = clients, .seed = 2});
      Rows all = joined(split.train);
      EXPECT_EQ(all.size(), 100u);
      EXPECT_FALSE(has_duplicates(all));
      for (const Rows& rows : split.train) EXPECT_FALSE(rows.empty());
    }
  }
}

TEST(Partition, SplitsManyClientsQuickly) {
  const Dataset data = labelled(100000, 10);
  for (const PartitionKind kind : kAllKinds) {
    const Lists split = divide(data, {.partition = kind, .dirichlet_alpha = 0.01, .clients = 50000});
    EXPECT_EQ(split.train.size(), 50000u);
  }
}

TEST(Partition, RefusesMoreClientsThanSamples) {
  const Dataset data = labelled(10, 2);
  for (const PartitionKind kind : kAllKinds) {
    EXPECT_NO_THROW(divide(data, {.partition = kind, .clients = 10}));
    EXPECT_EQ(data_error([&] { divide(data, {.partition = kind, .clients = 11}); }),
              "more clients than samples: 11 clients, 10 training samples; lower clients.count, or set "
              "clients.samples_per_client");
    EXPECT_EQ(data_error([&] { divide(data, {.partition = kind, .clients = 10, .test_share = 0.1}); }),
              "more clients than samples: 10 clients, 9 training samples; lower clients.count or "
              "problem.test_share, or set clients.samples_per_client");
  }
}

TEST(Partition, DrawsDistinctSamplesThatDependOnTheClientAlone) {
  const Dataset data = labelled(40, 2);
  SplitSpec spec{.clients = 100, .test_share = 0.25, .seed = 3, .samples_per_client = 6};
  const SharedSamples shared = share_samples(data, nullptr, spec);
  ASSERT_EQ(shared.clients(), 100u);
  std::vector<std::size_t> times(41);
  const Rows test = joined(divide(data, {.clients = 1, .test_share = 0.25, .seed = 3}).test);
  for (std::uint32_t i = 0; i < 100; ++i) {
    const std::vector<double> values = shared.part(i).train.value;
    EXPECT_EQ(shared.train_count(i), 6u);
    ASSERT_EQ(values.size(), 6u);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
    EXPECT_EQ(std::adjacent_find(values.begin(), values.end()), values.end());
    for (const double value : values) {
      times[static_cast<std::size_t>(value)] += 1;
      EXPECT_FALSE(std::binary_search(test.begin(), test.end(), static_cast<std::uint32_t>(value - 1)));
    }
  }
  // 600 draws of 30 samples: each is drawn 20 times on average, with a standard deviation of 4.
  for (std::size_t k = 0; k < 40; ++k) {
    if (std::binary_search(test.begin(), test.end(), static_cast<std::uint32_t>(k))) continue;
    EXPECT_GT(times[k + 1], 2u);
    EXPECT_LT(times[k + 1], 40u);
  }
  spec.clients = 5;  // the other clients keep their samples
  EXPECT_EQ(share_samples(data, nullptr, spec).part(4).train.value, shared.part(4).train.value);
  spec.seed = 4;
  EXPECT_NE(share_samples(data, nullptr, spec).part(4).train.value, shared.part(4).train.value);
  spec.samples_per_client = 30;
  EXPECT_EQ(share_samples(data, nullptr, spec).part(1).train.value,
            share_samples(data, nullptr, spec).part(2).train.value);
  spec.samples_per_client = 31;
  EXPECT_EQ(data_error([&] { share_samples(data, nullptr, spec); }),
            "clients.samples_per_client = 31, but there are 30 training samples; lower it");
}

TEST(Partition, RestoresThePartsFromTheirSharedSamples) {
  const Dataset data = labelled(23, 3);
  for (const PartitionKind kind : kAllKinds) {
    const std::vector<ClientDataset> parts =
        share_samples(data, nullptr, {.partition = kind, .clients = 4, .test_share = 0.2}).all_parts();
    const SharedSamples again(parts);
    ASSERT_EQ(again.clients(), 4u);
    for (std::uint32_t i = 0; i < 4; ++i) {
      EXPECT_EQ(again.part(i).train.value, parts[i].train.value);
      EXPECT_EQ(again.part(i).train.label, parts[i].train.label);
      EXPECT_EQ(again.part(i).train.row_start, parts[i].train.row_start);
      EXPECT_EQ(again.part(i).test.value, parts[i].test.value);
    }
  }
}

TEST(Partition, RefusesParametersOutOfRange) {
  const Dataset data = labelled(10, 2);
  EXPECT_NE(data_error([&] { divide(data, {.clients = 0}); }), "no error");
  for (const double share : {-0.1, 1.0, std::nan("")}) {
    EXPECT_NE(data_error([&] { divide(data, {.test_share = share}); }), "no error") << share;
  }
  for (const double alpha : {0.0, -1.0, 1e300, std::nan(""), static_cast<double>(INFINITY)}) {
    EXPECT_NE(data_error([&] {
                divide(data,
                       {.partition = PartitionKind::kDirichlet, .dirichlet_alpha = alpha, .clients = 2});
              }),
              "no error")
        << alpha;
  }
  Dataset regression = labelled(20000, 2);
  std::iota(regression.label.begin(), regression.label.end(), 0.5);
  EXPECT_NE(data_error([&] {
              divide(regression, {.partition = PartitionKind::kDirichlet, .clients = 2});
            }).find("needs classes"),
            std::string::npos);
}

TEST(MakeParts, SelectsTheRowsOfTheSplit) {
  const Dataset data = labelled(103, 4);
  for (const PartitionKind kind : kAllKinds) {
    const SplitSpec spec{.partition = kind, .clients = 10, .test_share = 0.2};
    const Lists split = divide(data, spec);
    const std::vector<ClientDataset> parts = share_samples(data, nullptr, spec).all_parts();
    ASSERT_EQ(parts.size(), 10u);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(parts[i].train.label, select_rows(data, split.train[i]).label);
      EXPECT_EQ(parts[i].train.value, select_rows(data, split.train[i]).value);
      EXPECT_EQ(parts[i].test.value, select_rows(data, split.test[i]).value);
    }
  }
}

TEST(MakeParts, SharesAGivenTestSetInsteadOfHoldingOut) {
  const Dataset data = labelled(20, 2);
  Dataset test = labelled(7, 2, 9);
  const std::vector<ClientDataset> parts =
      share_samples(data, &test, {.clients = 3, .test_share = 0.5}).all_parts();
  std::vector<double> train, shared;
  for (const ClientDataset& part : parts) {
    EXPECT_EQ(part.train.rows(), train.size() < 14 ? 7u : 6u);
    train.insert(train.end(), part.train.value.begin(), part.train.value.end());
    shared.insert(shared.end(), part.test.value.begin(), part.test.value.end());
  }
  EXPECT_EQ(train, data.value);
  EXPECT_EQ(shared, test.value);
}

TEST(MakeParts, WidensANarrowTestSetAndRefusesAWideOne) {
  Dataset data = labelled(20, 2);
  Dataset test = labelled(7, 2);
  data.columns = 5;
  for (const ClientDataset& part : share_samples(data, &test, {.clients = 3}).all_parts())
    EXPECT_EQ(part.test.columns, 5u);
  test.columns = 6;
  EXPECT_EQ(data_error([&] { share_samples(data, &test, {.clients = 3}); }),
            "the test data has 6 features, the training data 5; set problem.dim = 6");
}

// Each MPI rank keeps only the rows of its own clients.
TEST(SharedSamples, KeepOnlyTheRowsOfSomeClients) {
  const Dataset data = labelled(103, 5);
  SplitSpec spec;
  spec.clients = 10;
  spec.partition = PartitionKind::kIid;
  const SharedSamples all = share_samples(data, nullptr, spec);
  SharedSamples some = all;
  some.keep_clients(3, 7);
  EXPECT_EQ(some.clients(), 10u);
  std::size_t rows = 0;
  for (std::uint32_t i = 0; i < 10; ++i) {
    const ClientDataset whole = all.part(i), kept = some.part(i);
    if (i < 3 || i >= 7) {
      EXPECT_EQ(kept.train.rows(), 0u);
      continue;
    }
    rows += kept.train.rows();
    EXPECT_EQ(kept.train.value, whole.train.value) << "client " << i;
    EXPECT_EQ(kept.train.label, whole.train.label) << "client " << i;
  }
  EXPECT_EQ(some.train.rows(), rows);
}

}  // namespace
}  // namespace gradwire
