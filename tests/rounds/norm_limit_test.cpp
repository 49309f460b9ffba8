// Tests that replies beyond server.norm_limit are counted as missing, halved, or used with a warning.
#include "rounds/norm_limit.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "compressors/compressor.h"
#include "tests/algorithms/every_algorithm.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: Federation and its kin

// ---- the norm ----

TEST(NormOfAReply, CoversAllNumbersOfItsParts) {
  const Vec<double> a{3, 0}, b{0, 4, 12};
  const Payload<double> parts[] = {Payload<double>::dense(a), Payload<double>::dense(b),
                                   Payload<double>::nothing(7)};
  EXPECT_DOUBLE_EQ(norm_of<double>(parts), 13);
  EXPECT_EQ(norm_of<double>(std::span(parts).first(1)), 3);
  EXPECT_EQ(norm_of<double>({}), 0);
  const Vec<double> huge(3, 1e300), tiny(4, 1e-300);
  const Payload<double> far[] = {Payload<double>::dense(huge)}, near[] = {Payload<double>::dense(tiny)};
  EXPECT_DOUBLE_EQ(norm_of<double>(far), std::sqrt(3.0) * 1e300);
  EXPECT_DOUBLE_EQ(norm_of<double>(near), 2e-300);
}

// A payload decodes to a vector whose norm is at most norm_of(). A halved payload decodes to half of the
// vector.
TEST(NormOfAReply, BoundsPayloadsOfEveryCompressor) {
  constexpr std::size_t kSquare = 36;  // 6^2 = 8 * 9 / 2, for compressors of matrices
  Random random(1, "norms");
  for (const std::string spec :
       {"identity", "topk:k=3", "toplek:k=3", "randk:k=3", "randseqk:k=3", "permk", "bernoulli:p=0.5",
        "natural", "natural_dithering:s=3", "qsgd:s=2", "terngrad", "sign", "rankk", "rankr:r=1",
        "natural(topk:k=2)", "scaled(terngrad)", "induced(topk:k=2,randk:k=3)"}) {
    SCOPED_TRACE(spec);
    const Compressor compressor = parse_compressor(spec, kSquare, 4);
    for (std::uint32_t round = 0; round < 20; ++round) {
      Vec<double> v(kSquare);
      for (double& x : v) x = 1000 * random.normal();
      Scratch<double> scratch;
      PayloadBuffer<double> buffer;
      const Payload<double>& sent =
          compress<double>(compressor, v, {1, 0, round, RngDomain::kCompressor}, scratch, buffer);
      Vec<double> decoded(kSquare), half(kSquare);
      add_decoded<double>(sent, 1, decoded);
      const double norm = norm_of(std::span(&sent, 1));
      double squares = 0;
      for (const double x : decoded) squares += x * x;
      EXPECT_LE(std::sqrt(squares), norm * (1 + 1e-12));
      const HalvedParts<double> halved(std::span(&sent, 1), 3);
      add_decoded<double>(halved.parts()[0], 8, half);
      EXPECT_EQ(half, decoded) << "powers of two round nothing";
      EXPECT_EQ(wire_bits(halved.parts()[0]), wire_bits(sent));
      EXPECT_EQ(norm_of(halved.parts()), norm / 8);
    }
  }
}

TEST(Halvings, AreExactlyAsManyAsNeeded) {
  EXPECT_EQ(halvings(1, 1), 0);
  EXPECT_EQ(halvings(1.5, 1), 1);
  EXPECT_EQ(halvings(8, 1), 3);
  EXPECT_EQ(halvings(9, 1), 4);
  EXPECT_EQ(halvings(1e300, 1e-300), 1994);
}

// ---- runs ----

constexpr std::uint32_t kGuarded = 4, kGuardedRounds = 12;
constexpr std::size_t kGuardedDim = 10;
constexpr ClientId kExaggerates = 2;
constexpr double kWidest = 1e6;

// An oracle whose gradients are `times` the gradients of its function.
class Exaggerating final : public Oracle<double> {
 public:
  Exaggerating(Oracle<double>& inner, double times) : inner_(inner), times_(times) {}
  std::size_t dim() const override { return inner_.dim(); }
  std::size_t sample_count() const override { return inner_.sample_count(); }
  double loss_and_gradient(View<double> x, Batch batch, Out<double> gradient) override {
    const double loss = inner_.loss_and_gradient(x, batch, gradient);
    for (double& g : gradient) g *= times_;
    return loss;
  }
  bool hessian(View<double> x, Out<double> upper) override { return inner_.hessian(x, upper); }

 private:
  Oracle<double>& inner_;
  const double times_;
};

struct GuardedRun {
  Outcome outcome;
  Vec<double> model;
  std::string state;
  std::uint64_t bytes_up = 0;
  double bits_up = 0;
  std::vector<std::string> notes;
};

GuardedRun run_guarded(const AlgorithmSpec& spec, double times, NormLimit norm, double quorum,
                       const FaultSimulationOptions& options = {}) {
  const Federation<double> f(kGuarded, kGuardedDim);
  const auto run_context = f.run_context(spec);
  std::vector<Oracle<double>*> oracles = f.oracle_pointers();
  Exaggerating bad(*oracles[kExaggerates], times);
  oracles[kExaggerates] = &bad;
  FaultSimulation<double> transport(run_context, oracles, options);
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = kGuardedRounds;
  limits.evaluate_every = 0;
  limits.quorum = quorum;
  limits.norm = norm;
  GuardedRun ran;
  LoopHooks<double> hooks;
  hooks.on_note = [&](const std::string& line) { ran.notes.push_back(line); };
  ran.outcome = run_rounds<double>(*server, find_algorithm(spec.name).traits, *run_context, transport,
                                   progress, limits, hooks);
  ran.model.assign(server->model().begin(), server->model().end());
  ran.state = server->save();
  ran.bytes_up = progress.totals.bytes_up;
  ran.bits_up = progress.totals.bits_up;
  return ran;
}

void expect_same_run(const GuardedRun& a, const GuardedRun& b) {
  EXPECT_EQ(a.outcome, b.outcome);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.bytes_up, b.bytes_up);
  EXPECT_EQ(a.bits_up, b.bits_up);
}

TEST(NormLimit, TreatsRejectedRepliesAsLostForEveryAlgorithm) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::size_t tested = 0;
  for (const AlgorithmInfo& algorithm : synchronous_algorithms()) {
    if (algorithm.traits.needs_all_replies) continue;
    SCOPED_TRACE(std::string(algorithm.traits.name));
    AlgorithmSpec spec = spec_for(algorithm);
    // Steps that limit their own size are never too large.
    std::erase_if(spec.parameters,
                  [](const auto& p) { return p.first == "local_optimizer" || p.first == "local_clip_norm"; });
    const NormLimit limit{kWidest, NormAction::kReject};
    const GuardedRun rejected = run_guarded(spec, 1e12, limit, 0.75);
    EXPECT_EQ(rejected.outcome, Outcome::kFinished);
    for (const double x : rejected.model) EXPECT_LT(std::abs(x), 1e6);
    expect_same_run(rejected, run_guarded(spec, nan, {}, 0.75));
    expect_same_run(rejected, run_guarded(spec, 1e12, limit, 0.75, {.threads = 3, .encoded = true}));
    ++tested;
    EXPECT_FALSE(rejected.notes.empty());
    if (rejected.notes.empty()) continue;
    EXPECT_NE(rejected.notes[0].find("the reply of client 2 has the norm "), std::string::npos)
        << rejected.notes[0];
  }
  EXPECT_GT(tested, 20u);
}

TEST(NormLimit, EndsARunThatNeedsTheReplyAndExplainsWhy) {
  const GuardedRun ran =
      run_guarded(spec_of("gd", "identity", {}, "0.1"), 1e12, {kWidest, NormAction::kReject}, 1);
  EXPECT_EQ(ran.outcome, Outcome::kDiverged);
  ASSERT_EQ(ran.notes.size(), 1u);
  EXPECT_NE(ran.notes[0].find("above server.norm_limit = 1e+06"), std::string::npos) << ran.notes[0];
}

TEST(NormLimit, LeavesSmallerRepliesUnchanged) {
  for (const NormAction action : {NormAction::kReject, NormAction::kHalve, NormAction::kWarn}) {
    const AlgorithmSpec spec = spec_of("dcgd", "natural", {}, "0.1");
    const GuardedRun guarded = run_guarded(spec, 1, {kWidest, action}, 1);
    expect_same_run(guarded, run_guarded(spec, 1, {}, 1));
    EXPECT_TRUE(guarded.notes.empty());
  }
}

TEST(NormLimit, OnlyWarnsIfConfigured) {
  const AlgorithmSpec spec = spec_of("ef21", "topk:k=2", {}, "0.1");
  const GuardedRun warned = run_guarded(spec, 1e3, {1.0, NormAction::kWarn}, 1);
  expect_same_run(warned, run_guarded(spec, 1e3, {}, 1));
  ASSERT_FALSE(warned.notes.empty());
  EXPECT_NE(warned.notes[0].find("using it unchanged"), std::string::npos) << warned.notes[0];
}

// Compares with gd in a plain loop that halves large gradients.
TEST(NormLimit, HalvesLargeRepliesUntilTheyAreWithin) {
  constexpr double kStep = 0.1, kSmall = 2.0;
  const GuardedRun ran =
      run_guarded(spec_of("gd", "identity", {}, "0.1"), 1e3, {kSmall, NormAction::kHalve}, 1);
  EXPECT_EQ(ran.outcome, Outcome::kFinished);
  const Federation<double> f(kGuarded, kGuardedDim);
  Vec<double> x = f.x0;
  std::size_t halved = 0;
  for (std::uint32_t k = 0; k < kGuardedRounds; ++k) {
    Vec<double> sum(kGuardedDim);
    for (ClientId i = 0; i < kGuarded; ++i) {
      Vec<double> g(kGuardedDim);
      f.oracles[i]->loss_and_gradient(x, {}, g);
      double squares = 0;
      for (double& v : g) v *= i == kExaggerates ? 1e3 : 1, squares += v * v;
      double norm = std::sqrt(squares), scale = 1;
      for (; norm > kSmall; norm /= 2) scale /= 2;
      halved += scale < 1;
      for (std::size_t j = 0; j < kGuardedDim; ++j) sum[j] += scale * g[j];
    }
    for (std::size_t j = 0; j < kGuardedDim; ++j) x[j] -= kStep * sum[j] / kGuarded;
  }
  EXPECT_GE(halved, kGuardedRounds);
  for (std::size_t j = 0; j < kGuardedDim; ++j) EXPECT_NEAR(ran.model[j], x[j], 1e-12) << j;
}

TEST(NormLimit, ClipsToTheSameBitsInMemoryAndThroughTheCodec) {
  for (const char* compressor : {"identity", "natural", "randk:k=3", "qsgd:s=2", "terngrad", "permk"}) {
    SCOPED_TRACE(compressor);
    const AlgorithmSpec spec = spec_of("dcgd", compressor, {}, "0.1");
    const NormLimit limit{2.0, NormAction::kHalve};
    const GuardedRun memory = run_guarded(spec, 1e3, limit, 1);
    expect_same_run(memory, run_guarded(spec, 1e3, limit, 1, {.threads = 2, .encoded = true}));
    EXPECT_FALSE(memory.notes.empty());
    for (const double x : memory.model) EXPECT_LT(std::abs(x), 10);
  }
}

}  // namespace
}  // namespace gradwire
