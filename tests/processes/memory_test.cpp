// Tests of the memory of a simulation of a million clients, with the formula of
// docs/reference/experiment_file.md.
#include <gtest/gtest.h>
#include <string>

#include "benchmarks/run_session.h"
#include "tests/support/run_program.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

constexpr double kMillion = 1e6;
// Bytes per client, in addition to data, vectors and payload. kPlace is the part of kState that a client
// needs if it was never asked, but a neighbour was.
constexpr double kIdle = 24, kState = 64, kPlace = 32, kReply = 230;
// Bytes of a run with few clients: code, two threads and their temporary memory, files.
constexpr double kProgram = 32e6;
// Bytes by which the peaks of equal runs may differ. 80 runs differed by 1e6.
constexpr double kSpread = 2e6;

constexpr double kQuadraticData = 16;

// Returns the peak memory of a run. `asked` is the number of clients in each round.
double peak_of(const std::string& algorithm, std::size_t d, double asked, int rounds) {
  const std::string toml =
      "name = \"memory\"\n[problem]\nkind = \"quadratic\"\ndim = " + std::to_string(d) +
      "\n[clients]\ncount = " + std::to_string(static_cast<int>(kMillion)) +
      "\nparticipation = " + std::to_string(asked / kMillion) + "\n[algorithm]\n" + algorithm +
      "step_size = 0.1\n[run]\nevaluate_every = 0\nrounds = " + std::to_string(rounds) + "\n";
  return static_cast<double>(bench::run_alone(program("gradwire"), toml).peak_bytes);
}

class Memory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a sanitizer uses additional memory";
  }
};

TEST_F(Memory, IsAFewBytesPerUnaskedClient) {
  EXPECT_LE(peak_of("name = \"gd\"\n", 100, 10, 2), kProgram + kMillion * (kQuadraticData + kIdle));
}

TEST_F(Memory, IsTheVectorsAndLittleMorePerAskedClient) {
  constexpr std::size_t kDim = 40;
  constexpr double kVector = kDim * sizeof(double);
  constexpr double kAsked = 1e5;
  // The two rounds ask a share of 1 - 0.9^2 of all clients.
  const double peak =
      peak_of("name = \"scaffold\"\nlocal_steps = 1\nlocal_step_size = 0.01\n", kDim, kAsked, 2);
  constexpr double kEver = 0.19 * kMillion;
  // Only one or two of 16 neighbours are asked, so the sums of replies take 33 MB, not the 4 MB of the last
  // term. The other terms have room for that.
  EXPECT_LE(peak, kProgram + kSpread + kMillion * (kQuadraticData + kIdle + kPlace) +
                      kEver * (kVector + kState - kPlace) + kAsked * (kReply + 2 * kVector / 16));
  EXPECT_GE(peak, kEver * kVector);
}

TEST_F(Memory, HoldsStatesAndRepliesOfAMillionWorkingClients) {
  constexpr std::size_t kDim = 40;
  constexpr double kVector = kDim * sizeof(double);
  constexpr double kPayload = 2 * (sizeof(std::uint32_t) + sizeof(double));
  const double peak = peak_of("name = \"ef21\"\ncompressor = \"topk:k=2\"\n", kDim, kMillion, 3);
  EXPECT_LE(peak, kProgram + kMillion * (kQuadraticData + kIdle + kVector + kState + kReply + kPayload));
  EXPECT_GE(peak, kMillion * kVector);
}

}  // namespace
}  // namespace gradwire
