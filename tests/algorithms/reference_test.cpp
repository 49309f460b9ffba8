// One run, compared with the figures of an independent float64 program that shares no code with this one.
#include <fstream>
#include <gtest/gtest.h>

#include "simulation/prepare.h"
#include "simulation/simulate.h"
#include "tests/support/data_files.h"
#include "tests/support/test_data.h"

namespace gradwire {
namespace {

struct Row {
  std::uint32_t k;
  double f, grad_norm_sq, bits;  // `bits` is from row k + 1, and includes the first message
};

// EF21 with Top-1 at about 64 times the theory step size, for nonconvex logistic regression on mushrooms. The
// first four of the 20 clients have one sample more than the others; g_i^0 = ∇f_i(x^0). In round 91 two
// entries of a client tie, and rounding decides.
constexpr Row kMushrooms[] = {
    {0, 5.5506875519696806, 2.0960741185006073, 7168},    {1, 5.380953735339567, 1.9876841061095305, 7239},
    {2, 5.2165792758515135, 1.8717596788120774, 7310},    {5, 4.763716480357908, 1.5005131033792456, 7523},
    {10, 4.180326368907108, 1.0124907568257424, 7878},    {50, 2.263567665632757, 0.287958013683861, 10718},
    {90, 1.5150409175583612, 0.18460419019966445, 13558},
};

TEST(Reference, MatchesEf21OnMushrooms) {
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
