// What a method refuses, with the key at fault and what to do.
#include <gtest/gtest.h>

#include "compressors/config_error.h"
#include "tests/federation.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_of;

// "key: message" of the ConfigError that `action` throws.
template <class Action>
std::string complaint_of(Action&& action) {
  try {
    action();
  } catch (const ConfigError& e) {
    return e.key() + ": " + e.what();
  }
  return "nothing";
}
std::string complaint(const AlgorithmSpec& spec) {
  return complaint_of([&] { Federation<double>(4, 10).setup(spec); });
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Checks, AnUnknownMethodNamesTheNearest) {
  EXPECT_EQ(complaint(spec_of("ef22")), "algorithm.name: unknown algorithm 'ef22'; did you mean 'ef21'?");
}
TEST(Checks, MarinaWithTopkSaysWhyAndWhatToUse) {
  const std::string text = complaint(spec_of("marina", "topk:k=2", {{"p", "0.1"}}, "0.1"));
  EXPECT_TRUE(has(text, "algorithm.compressor: marina needs an unbiased compressor") && has(text, "ef21"))
      << text;
}
TEST(Checks, DianaWithTopkRunsOnNumbersAndRefusesTheory) {
  EXPECT_TRUE(has(complaint(spec_of("diana", "topk:k=2")), "needs an unbiased compressor"));
  EXPECT_TRUE(has(complaint(spec_of("diana", "topk:k=2", {}, "0.1")), "needs an unbiased compressor"))
      << "alpha is theory";
  EXPECT_EQ(complaint(spec_of("diana", "topk:k=2", {{"alpha", "0.5"}}, "0.1")), "nothing");
  EXPECT_EQ(complaint(spec_of("dcgd", "topk:k=2", {}, "0.1")), "nothing");
  const Federation<double> f(4, 10);
  std::vector<std::string> warnings;
  Theory theory;
  theory.n = 4;
  theory.d = 10;
  resolve(spec_of("dcgd", "topk:k=2", {}, "0.1"), theory, warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(has(warnings[0], "no theorem covers this run")) << warnings[0];
}
TEST(Checks, Ef21WithScaledRandkNamesTheUnscaledOne) {
  EXPECT_TRUE(has(complaint(spec_of("ef21", "randk:k=2")), "scaled=false"));
  EXPECT_EQ(complaint(spec_of("ef21", "randk:k=2,scaled=false")), "nothing");
  EXPECT_EQ(complaint(spec_of("ef21", "randk:k=8")), "nothing")
      << "omega = 1/4 < 1 is contractive as it stands";
}
TEST(Checks, DenseMethodsTakeTheIdentityAlone) {
  EXPECT_TRUE(has(complaint(spec_of("gd", "topk:k=2", {}, "0.1")), "identity alone"));
  EXPECT_TRUE(has(complaint(spec_of("fedavg", "randk:k=2", {{"local_step_size", "0.1"}})), "identity alone"));
}
TEST(Checks, KAboveTheDimensionNamesBoth) {
  EXPECT_EQ(complaint(spec_of("ef21", "topk:k=11")),
            "algorithm.compressor: topk: k = 11 is larger than the dimension 10");
}
TEST(Checks, AParameterOfAnotherMethodIsNamed) {
  EXPECT_EQ(complaint(spec_of("ef21", "topk:k=2", {{"p", "0.1"}})).substr(0, 41),
            "algorithm.p: ef21 has no parameter 'p'; k");
  EXPECT_EQ(complaint(spec_of("marina", "randk:k=2", {{"stepsize", "0.1"}})),
            "algorithm.stepsize: marina has no parameter 'stepsize'; did you mean 'step_size'?");
}
TEST(Checks, NumbersAreFiniteAndInRange) {
  for (const char* bad :
       {"0", "-1", "nan", "inf", "1e999", "abc", "theory*0", "theory*-2", "theory8", "0.1x"}) {
    const std::string text = complaint(spec_of("gd", "identity", {}, bad));
    EXPECT_TRUE(has(text, "algorithm.step_size: ")) << bad << " gave: " << text;
  }
  EXPECT_TRUE(has(complaint(spec_of("marina", "randk:k=2", {{"p", "1.5"}})), "algorithm.p: "));
  EXPECT_TRUE(has(complaint(spec_of("marina", "randk:k=2", {{"p", "0"}})), "algorithm.p: "));
  EXPECT_TRUE(has(complaint(spec_of("diana", "randk:k=2", {{"alpha", "-1"}})), "algorithm.alpha: "));
  EXPECT_TRUE(
      has(complaint(spec_of("fedavg", "identity", {{"local_steps", "0"}})), "algorithm.local_steps: "));
  EXPECT_TRUE(
      has(complaint(spec_of("fedavg", "identity", {{"local_steps", "-3"}})), "algorithm.local_steps: "));
  EXPECT_TRUE(has(complaint(spec_of("ef21", "topk:k=2", {{"init", "gradent"}})), "did you mean 'gradient'?"));
}
TEST(Checks, BatchAndParticipationFollowTheFactsOfTheMethod) {
  AlgorithmSpec spec = spec_of("ef21", "topk:k=2");
  spec.batch = 5;
  EXPECT_TRUE(has(complaint(spec), "algorithm.batch: ef21 works with full gradients"));
  spec = spec_of("marina", "randk:k=2");
  spec.participation = 0.5;
  EXPECT_TRUE(has(complaint(spec), "clients.participation: marina needs every client"));
  for (const double share : {0.0, -0.5, 1.5, std::nan("")}) {
    spec = spec_of("gd");
    spec.participation = share;
    EXPECT_TRUE(has(complaint(spec), "clients.participation: ")) << share;
  }
}
TEST(Checks, TheoryWithoutConstantsAsksForANumber) {
  Theory theory;
  theory.n = 4;
  theory.d = 10;
  std::vector<std::string> warnings;
  const std::string text = complaint_of([&] { resolve(spec_of("ef21", "topk:k=2"), theory, warnings); });
  EXPECT_TRUE(has(text, "algorithm.step_size: ") && has(text, "give a number")) << text;
}
TEST(Resolve, SpellsEverythingOutAndIsIdempotent) {
  const Federation<double> f(4, 10);
  for (const MethodInfo& method : methods()) {
    const bool dense = method.facts.takes == Takes::kIdentity || method.facts.name == "ef21_p";
    const std::string compressor = dense ? "identity" : "natural";
    const AlgorithmSpec once = f.setup(spec_of(std::string(method.facts.name), compressor))->algorithm;
    EXPECT_FALSE(needs_smoothness(once)) << method.facts.name;
    const AlgorithmSpec twice = f.setup(once)->algorithm;
    EXPECT_EQ(once.step_size, twice.step_size);
    EXPECT_EQ(once.parameters, twice.parameters);
    EXPECT_EQ(once.compressor, twice.compressor);
  }
}

}  // namespace
}  // namespace gradwire
