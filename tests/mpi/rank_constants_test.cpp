// Tests that all ranks compute the constants of one process, although each rank reads only the samples of its
// own clients.
#include <fstream>
#include <gtest/gtest.h>
#include <mutex>
#include <string>

#include "base/random.h"
#include "simulation/prepare.h"
#include "simulation/rank_scan.h"
#include "tests/mpi/thread_ranks.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

using testing::on_ranks;

class RankConstants : public ::testing::Test {
 protected:
  // Writes rows whose labels are 0 and 1 if `classes`, and otherwise real numbers.
  void write_data(std::size_t rows, std::size_t columns, bool classes, double density) const {
    std::ofstream out(folder_.path() / "data.txt");
    Random random(rows, "rows");
    for (std::size_t r = 0; r < rows; ++r) {
      if (classes) {
        out << (random.uniform() < 0.5 ? 0 : 1);
      } else {
        out << random.normal();
      }
      for (std::size_t c = 0; c < columns; ++c)
        if (random.uniform() < density) out << ' ' << c + 1 << ':' << random.normal();
      out << '\n';
    }
  }
  LoadedExperiment experiment(
      const std::string& problem, const std::string& clients = "count = 11",
      const std::string& algorithm = "name = \"marina\"\ncompressor = \"randk:k=2\"") const {
    return parse_experiment("[problem]\ndata = \"libsvm:data.txt\"\n" + problem + "\n[clients]\n" + clients +
                                "\n[algorithm]\n" + algorithm + "\n[run]\nrounds = 3\n",
                            folder_.path() / "run.toml");
  }

  const TemporaryFolder folder_;
};

void expect_same_plan(const Prepared& got, const Prepared& want) {
  EXPECT_EQ(to_toml(got.experiment), to_toml(want.experiment));
  EXPECT_EQ(got.warnings, want.warnings);
  EXPECT_EQ(got.weights, want.weights);
  ASSERT_EQ(got.smoothness.has_value(), want.smoothness.has_value());
  const Smoothness &a = *got.smoothness, &b = *want.smoothness;
  EXPECT_EQ(a.L, b.L);
  EXPECT_EQ(a.mu, b.mu);
  EXPECT_EQ(a.L_i, b.L_i);
  EXPECT_EQ(a.L_s, b.L_s);
  EXPECT_EQ(a.L_sample_max, b.L_sample_max);
  EXPECT_EQ(a.L_plus, b.L_plus);
  EXPECT_EQ(a.L_pm, b.L_pm);
  EXPECT_EQ(a.convex, b.convex);
  EXPECT_GT(a.L, 0);
}

void expect_same_on_ranks(const LoadedExperiment& loaded) {
  const Prepared alone = prepare(loaded);
  for (const unsigned count : {1u, 2u, 3u, 5u}) {
    SCOPED_TRACE(std::to_string(count) + " ranks");
    std::size_t stored = 0;
    std::mutex mutex;
    on_ranks(count, [&](std::shared_ptr<Ranks> ranks) {
      Prepared mine;
      all_or_none(ranks.get(), [&] { mine = prepare(loaded, ranks.get()); });
      const std::lock_guard lock(mutex);
      expect_same_plan(mine, alone);
      stored += mine.data.train.value.size();
    });
    EXPECT_EQ(stored, alone.data.train.value.size()) << "each value is on one rank";
  }
}

TEST_F(RankConstants, MatchOneProcessForLinearModels) {
  for (const bool wide : {false, true})  // wide: fewer rows than columns, so A A^T is formed
    for (const double density : {0.1, 1.0}) {
      SCOPED_TRACE((wide ? "wide, density " : "density ") + std::to_string(density));
      write_data(wide ? 60 : 300, wide ? 90 : 14, false, density);
      expect_same_on_ranks(experiment("kind = \"least_squares\""));
      expect_same_on_ranks(
          experiment("kind = \"least_squares\"\nbias = true\nregularizer = \"l2\"\nlambda = 0.1",
                     "count = 11\npartition = \"iid\"\nweights = \"samples\""));
      expect_same_on_ranks(experiment("kind = \"least_squares\"\nregularizer = \"nonconvex\"\nlambda = 0.1"));
      write_data(wide ? 60 : 300, wide ? 90 : 14, true, density);
      expect_same_on_ranks(experiment("kind = \"logistic\"\nregularizer = \"l2\"\nlambda = 0.1",
                                      "count = 11\npartition = \"dirichlet\""));
    }
}

TEST_F(RankConstants, MatchOneProcessForNetworks) {
  write_data(200, 6, true, 0.8);
  expect_same_on_ranks(experiment("kind = \"mlp\"\nhidden = [4]", "count = 70\npartition = \"iid\"",
                                  "name = \"gd\"\nstep_size = \"theory\""));
}

TEST_F(RankConstants, MatchOneProcessWithMoreRanksThanClients) {
  write_data(40, 5, false, 0.7);
  expect_same_on_ranks(experiment("kind = \"least_squares\"", "count = 2"));
}

// Returns, for each rank, its error, "elsewhere" if only other ranks failed, or "" if all succeeded.
std::vector<std::string> complaints(const LoadedExperiment& loaded, unsigned count) {
  std::vector<std::string> said(count);
  on_ranks(count, [&](std::shared_ptr<Ranks> ranks) {
    std::string& mine = said[ranks->rank()];
    try {
      all_or_none(ranks.get(), [&] { prepare(loaded, ranks.get()); });
    } catch (const FailedElsewhere&) {
      mine = "elsewhere";
    } catch (const std::exception& error) {
      mine = error.what();
    }
  });
  return said;
}

TEST_F(RankConstants, FailOnAllRanksIfTheRowsOfOneAreNotNumbers) {
  write_data(40, 5, false, 0.7);
  std::ofstream(folder_.path() / "data.txt", std::ios::app) << "1 3:x\n";
  const auto said = complaints(experiment("kind = \"least_squares\"", "count = 41"), 3);
  EXPECT_EQ(said[0], "elsewhere");
  EXPECT_EQ(said[1], "elsewhere");
  EXPECT_NE(said[2].find("data.txt:41: the value 'x' is not a number"), std::string::npos) << said[2];
}

TEST_F(RankConstants, FailOnAllRanksIfOneCannotComputeThem) {
  write_data(40, 5, true, 0.7);
  std::ofstream(folder_.path() / "data.txt", std::ios::app)
      << "1 1:1e308 2:1e308 3:1e308 4:1e308 5:1e308\n1 1:1e308\n";
  const auto said = complaints(
      experiment("kind = \"mlp\"\nhidden = []", "count = 42", "name = \"gd\"\nstep_size = \"theory\""), 3);
  for (const std::string& mine : said)
    EXPECT_TRUE(mine == "elsewhere" || mine.find("is not finite") != std::string::npos) << mine;
  EXPECT_NE(std::count(said.begin(), said.end(), "elsewhere"), 3);
}

TEST(OrderedScan, GivesAllRanksTheStateOfTheLastInTheirOrder) {
  for (const unsigned count : {1u, 2u, 5u})
    on_ranks(count, [&](std::shared_ptr<Ranks> ranks) {
      all_or_none(ranks.get(), [&] {
        const OrderedScan scan = ordered_scan_of(ranks.get(), 9);
        std::vector<double> state = {1};
        scan(state, [&] { state[0] = state[0] * 10 + ranks->rank(); });
        double want = 1;
        for (unsigned r = 0; r < count; ++r) want = want * 10 + r;
        EXPECT_EQ(state[0], want);
      });
    });
}

TEST(OrderedScan, ThrowsTheErrorOfOneRankThereAndEndsOnAllOthers) {
  for (const unsigned bad : {0u, 1u, 3u}) {
    std::vector<std::string> said(4);
    on_ranks(4, [&](std::shared_ptr<Ranks> ranks) {
      std::string& mine = said[ranks->rank()];
      try {
        all_or_none(ranks.get(), [&] {
          double state = 0;
          ordered_scan_of(ranks.get(), 9)({&state, 1}, [&] {
            if (ranks->rank() == bad) throw std::runtime_error("bad");
          });
          mine = "continued";
        });
      } catch (const FailedElsewhere&) {
        mine = "elsewhere";
      } catch (const std::runtime_error& error) {
        mine = error.what();
      }
    });
    for (unsigned r = 0; r < 4; ++r) EXPECT_EQ(said[r], r == bad ? "bad" : "elsewhere");
  }
}

TEST(AllOrNone, EndsOnAllRanksIfOneFailsBeforeTheOthersCall) {
  std::vector<std::string> said(3);
  on_ranks(3, [&](std::shared_ptr<Ranks> ranks) {
    std::string& mine = said[ranks->rank()];
    try {
      all_or_none(ranks.get(), [&] {
        if (ranks->rank() == 1) throw std::runtime_error("no file");
        none_has_failed(ranks.get());
        mine = "continued";
      });
    } catch (const FailedElsewhere&) {
      mine = "elsewhere";
    } catch (const std::runtime_error& error) {
      mine = error.what();
    }
  });
  EXPECT_EQ(said, (std::vector<std::string>{"elsewhere", "no file", "elsewhere"}));
}

}  // namespace
}  // namespace gradwire
