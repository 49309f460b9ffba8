// A trajectory against the figures of an independent float64 program that shares no code with this one.
#include <fstream>
#include <gtest/gtest.h>

#include "experiments/simulate/prepare.h"
#include "experiments/simulate/simulate.h"
#include "tests/support/data_files.h"
#include "tests/support/test_data.h"

namespace gradwire {
namespace {

struct Row {
  std::uint32_t k;
  double f, grad_norm_sq, bits;  // bits: of row k + 1, the first message counted
};

// EF21, Top-1, 64 times the theory step, nonconvex logistic regression on mushrooms, 20 clients, g_i^0 =
// ∇f_i(x^0).
constexpr Row kMushrooms[] = {
    {0, 5.551740523343052, 2.098103497524053, 7168},
    {1, 5.381843488986088, 1.989550208179838, 7239},
    {2, 5.217314265048013, 1.8734264927194184, 7310},
    {5, 4.764061349256292, 1.5014322403284237, 7523},
    {10, 4.180381019363016, 1.0124631220909552, 7878},
    {50, 2.2644310032218735, 0.2877017877304255, 10718},
    {100, 1.3872640620996064, 0.17338302017607532, 14268},
};

TEST(Reference, Ef21OnMushroomsFollowsTheIndependentTrajectory) {
  const auto data = test_data("mushrooms");
  if (!data) GTEST_SKIP() << "the data set mushrooms is not here";
  const TemporaryFolder folder;
  std::ofstream x0(folder.path() / "x0.txt");
  for (int j = 0; j < 112; ++j) x0 << (j % 5 - 2) / 2.0 << '\n';
  x0.close();
  const std::string toml = R"(
[problem]
kind = "logistic"
data = "libsvm:)" + data->string() +
                           R"("
regularizer = "nonconvex"
lambda = 0.1
[clients]
count = 20
[algorithm]
name = "ef21"
compressor = "topk:k=1"
step_size = 0.08204541101529314
init = "gradient"
[run]
rounds = 101
x0 = "file:x0.txt"
)";
  std::vector<RoundRecord> records;
  RunObserver observer;
  observer.on_record = [&](const RoundRecord& r) { records.push_back(r); };
  const std::atomic<bool> stop{false};
  simulate(prepare(parse_experiment(toml, folder.path() / "case.toml")), false, 1, observer, stop);
  ASSERT_EQ(records.size(), 102u);
  for (const Row& row : kMushrooms) {
    EXPECT_NEAR(records[row.k].loss, row.f, 1e-11 * row.f) << "row " << row.k;
    EXPECT_NEAR(*records[row.k].grad_norm_sq, row.grad_norm_sq, 1e-9 * row.grad_norm_sq) << "row " << row.k;
    EXPECT_EQ(records[row.k + 1].bits_up, row.bits) << "row " << row.k;
  }
}

}  // namespace
}  // namespace gradwire
