// Tests that a run ends if one client's gradient or Hessian has an entry that is not finite, while the loss
// is finite. If an algorithm or compressor used or dropped the entry, the run would silently continue.
#include <gtest/gtest.h>
#include <limits>

#include "tests/algorithms/every_algorithm.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: Federation and its kin

constexpr std::uint32_t kClients = 4, kClean = 5, kRounds = 60;
constexpr std::size_t kDim = 10;  // a Hessian has 55 entries; 10 = 4 * 5 / 2, for compressors of matrices
constexpr ClientId kBad = 2;

// The gradients of another oracle, with one entry spoiled once `spoils` is set.
class Spoiled final : public Oracle<double> {
 public:
  explicit Spoiled(Oracle<double>& inner) : inner_(inner) {}
  bool spoils = false, spoils_hessian = false;
  std::size_t entry = 0;
  double value = 0;
  int spoiled = 0;  // number of spoiled calls

  std::size_t dim() const override { return inner_.dim(); }
  std::size_t sample_count() const override { return inner_.sample_count(); }
  double loss_and_gradient(View<double> x, Batch batch, Out<double> gradient) override {
    const double loss = inner_.loss_and_gradient(x, batch, gradient);
    if (spoils && !spoils_hessian) spoil(gradient);
    return loss;
  }
  bool hessian(View<double> x, Out<double> upper) override {
    const bool known = inner_.hessian(x, upper);
    if (spoils && spoils_hessian) spoil(upper);
    return known;
  }

 private:
  void spoil(Out<double> v) {
    v[entry] = value;
    ++spoiled;
  }
  Oracle<double>& inner_;
};

// Makes five good rounds, then bad ones until the run notices. The first round that saw the entry must be the
// last.
void expect_noticed(const AlgorithmSpec& spec, std::size_t entry, double value, bool hessian = false) {
  SCOPED_TRACE(spec.name + " with " + spec.compressor + ", entry " + std::to_string(entry));
  const Federation<double> f(kClients, kDim);
  const auto run_context = f.run_context(spec);
  std::vector<Oracle<double>*> oracles = f.oracle_pointers();
  Spoiled bad(*oracles[kBad]);
  bad.entry = entry;
  bad.value = value;
  bad.spoils_hessian = hessian;
  oracles[kBad] = &bad;
  FaultSimulation<double> transport(run_context, oracles, {});
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = kRounds;
  limits.evaluate_every = 0;  // evaluations would notice the entry themselves
  std::vector<std::string> notes;
  LoopHooks<double> hooks;
  hooks.on_note = [&](const std::string& line) { notes.push_back(line); };
  std::uint32_t done = 0;
  hooks.on_round = [&](std::uint32_t k) {
    done = k;
    EXPECT_EQ(bad.spoiled, 0) << "round " << k << " was not the last";
    bad.spoiled = 0;  // so that the failure is reported once
    bad.spoils = k >= kClean;
  };
  const AlgorithmTraits traits = find_algorithm(spec.name).traits;
  const Outcome outcome =
      run_rounds<double>(*server, traits, *run_context, transport, progress, limits, hooks);
  EXPECT_EQ(outcome, Outcome::kDiverged);
  ASSERT_FALSE(notes.empty());
  const std::string where = "round " + std::to_string(done) + ": ";
  EXPECT_TRUE(notes.back().starts_with(where)) << notes.back();
  EXPECT_NE(notes.back().find("client 2"), std::string::npos) << notes.back();
}

const double kBadValues[] = {std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()};

TEST(NotFinite, StopsEveryAlgorithmAfterASpoiledEntry) {
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms())
    for (std::size_t k = 0; k < std::size(kBadValues); ++k)
      expect_noticed(spec_for(algorithm), 3 * k + 1, kBadValues[k]);
}

TEST(NotFinite, IsHiddenByNoCompressor) {
  const std::string unbiased[] = {"randk:k=3",
                                  "randseqk:k=3",
                                  "permk",
                                  "bernoulli:p=0.1",
                                  "natural",
                                  "natural_dithering:s=3",
                                  "qsgd:s=2",
                                  "qsgd:s=4,p=inf",
                                  "terngrad",
                                  "natural(randk:k=3)",
                                  "qsgd:s=2(randk:k=3)"};
  const std::string contractive[] = {"topk:k=2",
                                     "toplek:k=2",
                                     "sign",
                                     "rankk",
                                     "natural(topk:k=2)",
                                     "scaled(terngrad)",
                                     "randk:k=2,scaled=false"};
  for (std::size_t entry = 0; entry < kDim; entry += 3) {
    for (const std::string& c : unbiased)
      expect_noticed(spec_of("diana", c, {}, "0.01"), entry, kBadValues[0]);
    for (const std::string& c : unbiased)
      expect_noticed(spec_of("dcgd", c, {}, "0.01"), entry, kBadValues[1]);
    for (const std::string& c : contractive)
      expect_noticed(spec_of("ef21", c, {}, "0.01"), entry, kBadValues[0]);
    for (const std::string& c : contractive)
      expect_noticed(spec_of("ef14", c, {}, "0.01"), entry, kBadValues[1]);
  }
}

TEST(NotFinite, IsDetectedInHessians) {
  for (const char* compressor : {"randk:k=3", "randseqk:k=3", "topk:k=3", "natural", "rankr:r=1", "identity"})
    for (const char* option : {"1", "2"})
      for (std::size_t entry = 0; entry < upper_size(kDim); entry += 9)
        expect_noticed(spec_of("fednl", compressor, {{"option", option}}), entry, kBadValues[0], true);
}

}  // namespace
}  // namespace gradwire
