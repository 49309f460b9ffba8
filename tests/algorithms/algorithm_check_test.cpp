// Errors of invalid algorithm settings: the message names the wrong key and the remedy.
#include <cmath>
#include <gtest/gtest.h>

#include "base/config_error.h"
#include "tests/algorithms/federation.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_of;

// Returns "key: message" of the ConfigError that `action` throws, or "nothing".
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
  return complaint_of([&] { Federation<double>(4, 10).run_context(spec); });
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Checks, SuggestNearestNameForUnknownAlgorithm) {
  EXPECT_EQ(complaint(spec_of("ef22")), "algorithm.name: unknown algorithm 'ef22'; did you mean 'ef21'?");
}
TEST(Checks, RejectMarinaWithTopkAndSuggestAlternatives) {
  const std::string text = complaint(spec_of("marina", "topk:k=2", {{"p", "0.1"}}, "0.1"));
  EXPECT_TRUE(has(text, "algorithm.compressor: marina needs an unbiased compressor") && has(text, "ef21"))
      << text;
}
TEST(Checks, AcceptDianaWithTopkOnlyWithNumericSteps) {
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
TEST(Checks, SuggestScaledCompressorsForEf21) {
  EXPECT_TRUE(has(complaint(spec_of("ef21", "randk:k=2")), "write scaled(randk:k=2), or use topk"));
  EXPECT_EQ(complaint(spec_of("ef21", "scaled(randk:k=2)")), "nothing");
  EXPECT_EQ(complaint(spec_of("ef21", "randk:k=2,scaled=false")), "nothing");
  EXPECT_EQ(complaint(spec_of("ef21", "randk:k=8")), "nothing")
      << "omega = 1/4 < 1 is contractive without scaling";
}
TEST(Checks, RejectCompressorsForDenseAlgorithms) {
  EXPECT_TRUE(has(complaint(spec_of("gd", "topk:k=2", {}, "0.1")), "compressor must be identity"));
  // fwd_grad sends a few numbers, not a vector.
  EXPECT_TRUE(has(complaint(spec_of("fwd_grad", "topk:k=2", {}, "0.1")),
                  "fwd_grad compresses nothing, so its compressor must be identity; for "));
  EXPECT_TRUE(has(complaint(spec_of("fedavg", "randk:k=2", {{"local_step_size", "0.1"}})),
                  "compressor must be identity"));
}
TEST(Checks, RejectRankRForVectors) {
  for (const char* name : {"ef21", "diana", "dcgd", "gd"})
    EXPECT_TRUE(has(complaint_of([&] { check_algorithm(spec_of(name, "rankr")); }), "use it with fednl"))
        << name;
  check_algorithm(spec_of("fednl", "rankr:r=2"));
  EXPECT_TRUE(has(
      complaint_of([&] {
        check_algorithm(spec_of("ef21_p", "identity", {{"compressor_down", "rankr"}}));
        Federation<double>(4, 10).run_context(spec_of("ef21_p", "identity", {{"compressor_down", "rankr"}}));
      }),
      "algorithm.compressor_down: rankr"));
}
TEST(Checks, NameKAndDimensionIfKIsTooLarge) {
  EXPECT_EQ(complaint(spec_of("ef21", "topk:k=11")),
            "algorithm.compressor: topk: k = 11 is larger than the dimension 10");
}
TEST(Checks, NameParametersOfOtherAlgorithms) {
  EXPECT_EQ(complaint(spec_of("ef21", "topk:k=2", {{"p", "0.1"}})).substr(0, 41),
            "algorithm.p: ef21 has no parameter 'p'; k");
  EXPECT_EQ(complaint(spec_of("marina", "randk:k=2", {{"stepsize", "0.1"}})),
            "algorithm.stepsize: marina has no parameter 'stepsize'; did you mean 'step_size'?");
}
TEST(Checks, RequireFiniteNumbersInRange) {
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
TEST(Checks, CheckBatchAndParticipationAgainstTraits) {
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
TEST(Checks, AskForANumberIfConstantsAreUnknown) {
  Theory theory;
  theory.n = 4;
  theory.d = 10;
  std::vector<std::string> warnings;
  const std::string text = complaint_of([&] { resolve(spec_of("ef21", "topk:k=2"), theory, warnings); });
  EXPECT_TRUE(has(text, "algorithm.step_size: ") && has(text, "give a number")) << text;
}
// needed_constants() names what resolve() needs, for every algorithm and compressor.
TEST(Checks, FindTheNeededConstantsOfEveryAlgorithm) {
  for (const AlgorithmInfo& algorithm : all_algorithms()) {
    SCOPED_TRACE(algorithm.traits.name);
    for (const char* down : {"topk:k=1", "topk:k=4"}) {
      AlgorithmSpec spec = spec_of(
          std::string(algorithm.traits.name),
          algorithm.traits.compressor_class == CompressorClass::kContractive ? "topk:k=4" : "identity");
      for (const ParameterHelp& parameter : algorithm.parameters)
        if (parameter.name == "compressor_down") spec.parameters.emplace_back(parameter.name, down);
      Theory theory;
      theory.n = 4;
      theory.d = 10;
      theory.replication.count = algorithm.traits.name == "coded_gd" ? 2 : 1;
      const NeededConstants needed = needed_constants(spec);
      std::vector<std::string> warnings;
      const std::string text = complaint_of([&] { resolve(spec, theory, warnings); });
      EXPECT_EQ(text == "nothing", !needed.any()) << text;
      const auto names = [&](const std::string& key) { return !key.empty() && has(text, key + ": "); };
      EXPECT_EQ(needed.any(), names(needed.smoothness) || names(needed.convexity)) << text;
    }
  }
}
TEST(Checks, FindNeededConstantsBeforeDataAreLoaded) {
  const auto needed = [](const AlgorithmSpec& spec) {
    const NeededConstants constants = needed_constants(spec);
    return constants.smoothness + "|" + constants.convexity;
  };
  EXPECT_EQ(needed(spec_of("nesterov")), "algorithm.step_size|algorithm.mu");
  EXPECT_EQ(needed(spec_of("nesterov", "identity", {}, "0.1")), "|algorithm.mu");
  EXPECT_EQ(needed(spec_of("nesterov", "identity", {{"mu", "0.1"}}, "0.1")), "|");
  EXPECT_EQ(needed(spec_of("fednl", "topk:k=9", {{"option", "1"}})), "|algorithm.mu");
  EXPECT_EQ(needed(spec_of("fednl", "topk:k=9")), "|") << "option 2 is the default";
  EXPECT_EQ(needed(spec_of("adiana", "randk:k=2", {}, "0.1")), "|algorithm.mu");
  EXPECT_EQ(needed(spec_of("proxskip", "identity", {}, "0.1")), "|algorithm.p");
  EXPECT_EQ(needed(spec_of("ef21_w", "topk:k=2", {}, "0.1")), "algorithm.w|");
  EXPECT_EQ(needed(spec_of("adiana", "randk:k=2", {{"mu", "0.9"}, {"alpha", "0.9"}})), "algorithm.step_size|")
      << "the values of the numbers are checked later, with the constants";
  EXPECT_EQ(needed(spec_of("fedavg")), "algorithm.local_step_size|");
  EXPECT_EQ(needed(spec_of("fedavg", "identity", {{"local_step_size", "0.1"}}, "theory")), "|");
}

// Requirements of theorems on numbers that the user gives.

std::vector<std::string> warnings_of(const AlgorithmSpec& spec) {
  const Federation<double> f(4, 10);
  Theory theory;
  theory.n = 4;
  theory.d = 10;
  theory.smoothness = &f.smoothness;
  std::vector<std::string> warnings;
  resolve(spec, theory, warnings);
  return warnings;
}

TEST(Assumptions, WarnIfClientsDifferInAsynchronousTheoremsOfEqualClients) {
  const Federation<double> f(4, 10);
  Theory theory;
  theory.n = 4;
  theory.d = 10;
  theory.smoothness = &f.smoothness;
  const auto count = [&](const char* algorithm, const char* step, bool equal) {
    theory.has_equal_clients = equal;
    std::vector<std::string> warnings;
    resolve(spec_of(algorithm, "identity", {}, step), theory, warnings);
    for (const std::string& warning : warnings)
      EXPECT_TRUE(has(warning, std::string(algorithm) + ": the theorem of the step size assumes that all "
                                                        "clients have the same function"))
          << warning;
    return warnings.size();
  };
  for (const char* algorithm : {"asgd", "delay_adaptive_asgd", "rennala", "ringmaster", "mindflayer"}) {
    EXPECT_EQ(count(algorithm, "theory", false), 1u) << algorithm;
    EXPECT_EQ(count(algorithm, "theory", true), 0u) << algorithm;
    EXPECT_EQ(count(algorithm, "0.1", false), 0u) << algorithm;
  }
  EXPECT_EQ(count("ringleader", "theory", false), 0u);
}

TEST(Assumptions, WarnIfAnotherParameterReplacesParticipation) {
  const auto warnings = [](AlgorithmSpec spec, double participation) {
    spec.participation = participation;
    return warnings_of(spec);
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(warnings(spec_of("ef21_pp", "topk:k=2", {{"p", "0.5"}}), 0.25),
            Lines{"participation has no effect with p = 0.5"});
  EXPECT_EQ(warnings(spec_of("ef21_pp", "topk:k=2", {{"p", "0.25"}}), 0.25), Lines{});
  EXPECT_EQ(warnings(spec_of("ef21_pp", "topk:k=2"), 0.25), Lines{});
  EXPECT_EQ(warnings(spec_of("ef21_pp", "topk:k=2", {{"p", "0.5"}}), 1), Lines{});
  EXPECT_EQ(warnings(spec_of("pp_marina", "randk:k=2", {{"r", "2"}}), 0.25),
            Lines{"participation has no effect with r = 2"});
  EXPECT_EQ(warnings(spec_of("pp_marina", "randk:k=2", {{"r", "1"}}), 0.25), Lines{});
  EXPECT_EQ(warnings(spec_of("pp_marina", "randk:k=2"), 0.25), Lines{});
}

TEST(Schedules, WarnIfCosineEndsBeforeTheRun) {
  const auto warnings = [](const char* algorithm, Options parameters) {
    Theory theory;
    theory.n = 4;
    theory.d = 10;
    theory.rounds = 100;
    parameters.emplace_back("schedule", "cosine");
    const bool is_local = algorithm != std::string("ef21");
    if (is_local) parameters.emplace_back("local_step_size", "0.1");
    std::vector<std::string> said;
    resolve(spec_of(algorithm, "identity", parameters, "0.1"), theory, said);
    return said;
  };
  using Lines = std::vector<std::string>;
  const std::string rest =
      " have no effect: horizon = 9; leave horizon out, so that the step falls until the end";
  for (const char* algorithm : {"ef21", "fedavg", "scaffold"}) {
    EXPECT_EQ(warnings(algorithm, {{"horizon", "9"}}),
              Lines{"the cosine step is 0 in the last 91 of 100 rounds, which" + rest});
    EXPECT_EQ(warnings(algorithm, {{"horizon", "100"}}), Lines{});
    EXPECT_EQ(warnings(algorithm, {{"horizon", "300"}}), Lines{});
    EXPECT_EQ(warnings(algorithm, {}), Lines{});
  }
  EXPECT_EQ(warnings("fedbuff", {{"horizon", "9"}, {"buffer", "5"}}),
            Lines{"the cosine step is 0 in the last 11 of 20 steps of the server, which" + rest});
  EXPECT_EQ(warnings("fedbuff", {{"horizon", "20"}, {"buffer", "5"}}), Lines{});
}

TEST(Assumptions, RejectExcludedParametersForTheoryAndWarnForNumbers) {
  struct Case {
    const char *algorithm, *compressor, *key, *value, *most;
    double participation = 1;
  };
  for (const Case& c :
       {Case{"diana", "randk:k=2", "alpha", "0.5", "1/(1 + omega) = 0.2"},
        Case{"vr_diana", "randk:k=2", "alpha", "1", "1/(1 + omega) = 0.2"},
        Case{"adiana", "randk:k=2", "alpha", "0.21", "1/(1 + omega) = 0.2"},
        Case{"cofig", "randk:k=2", "alpha", "0.5", "1/(1 + omega) = 0.2", 0.5},
        Case{"frecon", "randk:k=2", "alpha", "0.5", "1/(1 + omega) = 0.2", 0.5},
        Case{"frecon", "randk:k=2", "lambda", "0.2", "|S|/(2 (1 + omega) n) = 0.05", 0.5},
        Case{"dasha", "randk:k=2", "a", "0.5", "1/(2 omega + 1) = 0.1111"},
        Case{"dasha_page", "randk:k=2", "a", "0.5", "1/(2 omega + 1) = 0.1111"},
        Case{"dasha_mvr", "randk:k=2", "a", "0.5", "1/(2 omega + 1) = 0.1111"},
        Case{"adiana", "randk:k=2", "mu", "0.9", "the strong convexity of the problem = "},
        Case{"nesterov", "identity", "mu", "0.9", "the strong convexity of the problem = "}}) {
    AlgorithmSpec spec = spec_of(c.algorithm, c.compressor, {{c.key, c.value}});
    spec.participation = c.participation;
    const std::string text = complaint(spec), key = c.key;
    EXPECT_TRUE(text.starts_with("algorithm." + key + ": " + key + " = " + c.value + " is above " + c.most))
        << c.algorithm << " gave: " << text;
    spec.step_size = "0.1";
    EXPECT_EQ(complaint(spec), "nothing") << c.algorithm;
    const auto warnings = warnings_of(spec);
    ASSERT_EQ(warnings.size(), 1u) << c.algorithm;
    EXPECT_TRUE(has(warnings[0], c.most) && has(warnings[0], "no theorem covers this run")) << warnings[0];
  }
}

// Only alpha is compared with theory. The step size of 1 is that of the listing, with or without a theorem.
TEST(Assumptions, WarnIfNoTheoremCoversTheLearningRateOfFedNl) {
  const auto most_of = [](const char* compressor, const char* alpha) {
    const auto warnings = warnings_of(spec_of("fednl", compressor, {{"alpha", alpha}}));
    return warnings.empty() ? "nothing" : warnings[0];
  };
  EXPECT_TRUE(has(most_of("randk:k=2", "0.5"), "alpha = 0.5 is above 1/(1 + omega) = 0.0363"));
  EXPECT_TRUE(has(most_of("topk:k=2", "1.5"), "alpha = 1.5 is above the largest rate of its theorems = 1"));
  EXPECT_EQ(most_of("topk:k=2", "0.5"), "nothing");
}

TEST(Assumptions, AcceptValuesUpToThoseOfTheory) {
  for (const char* alpha : {"theory", "0.2", "0.01"})
    EXPECT_EQ(complaint(spec_of("diana", "randk:k=2", {{"alpha", alpha}})), "nothing") << alpha;
  EXPECT_EQ(complaint(spec_of("nesterov", "identity", {{"mu", "0.01"}})), "nothing");
  EXPECT_TRUE(warnings_of(spec_of("adiana", "randk:k=2", {{"mu", "0.01"}})).empty());
}

TEST(Assumptions, DoNotCompareMuWithABound) {
  const Federation<double> f(4, 10);
  Smoothness bound = f.smoothness;
  bound.exact = false;
  bound.mu = 0.001;
  Theory theory;
  theory.n = 4;
  theory.d = 10;
  theory.smoothness = &bound;
  std::vector<std::string> warnings;
  resolve(spec_of("nesterov", "identity", {{"mu", "0.1"}}), theory, warnings);
  EXPECT_TRUE(warnings.empty());
}

TEST(Assumptions, RequireWeightsOfEf21WToAddUpToOne) {
  const auto with = [](const char* w) { return complaint(spec_of("ef21_w", "topk:k=2", {{"w", w}})); };
  EXPECT_TRUE(has(with("1 1 1 1"), "algorithm.w: the weights add up to 4, not to 1")) << with("1 1 1 1");
  EXPECT_TRUE(has(with("0.2 0.2 0.2 0.2"), "divide each by this sum"));
  EXPECT_EQ(with("0.333 0.333 0.333 0.001"), "nothing");
  EXPECT_EQ(with("0.25 0.25 0.25 0.25"), "nothing");
}

TEST(Assumptions, ComputeStepOfEf21WFromItsWeights) {
  const Federation<double> f(4, 10);
  const auto step = [&](Options options) {
    return std::stod(f.run_context(spec_of("ef21_w", "topk:k=2", std::move(options)))->algorithm.step_size);
  };
  const auto& L_i = f.smoothness.L_i;
  const double xi = std::sqrt(0.8) / (1 - std::sqrt(0.8));
  const double own = L_i[0] * L_i[0] / 0.001 + (L_i[1] * L_i[1] + L_i[2] * L_i[2] + L_i[3] * L_i[3]) / 0.333;
  EXPECT_NEAR(step({{"w", "0.001 0.333 0.333 0.333"}}), 1 / (f.smoothness.L + std::sqrt(own / 16) * xi),
              1e-12);
  const double equal = step({{"w", "0.25 0.25 0.25 0.25"}});
  EXPECT_NEAR(equal, 1 / (f.smoothness.L + f.smoothness.L_tilde() * xi), 1e-12) << "equal weights are EF21";
  EXPECT_LE(equal, step({}) * (1 + 1e-12));
}

TEST(Assumptions, RequireABatchForPageWithRareWholeRounds) {
  EXPECT_TRUE(has(complaint(spec_of("page", "identity", {{"p", "0.5"}}, "0.1")),
                  "algorithm.batch: page with p below 1"));
  EXPECT_EQ(complaint(spec_of("page", "identity", {{"p", "1"}}, "0.1")), "nothing");
  AlgorithmSpec spec = spec_of("page", "identity", {{"p", "0.5"}}, "0.1");
  spec.batch = 3;
  EXPECT_EQ(complaint(spec), "nothing");
}

TEST(Assumptions, WarnIfConvexTheoremsMeetNonconvexProblems) {
  Federation<double> f(4, 10);
  f.smoothness.convex = false;
  Theory theory;
  theory.n = 4;
  theory.d = 10;
  theory.smoothness = &f.smoothness;
  for (const char* name : {"dcgd", "sgd_nice", "adiana", "proxskip"}) {
    std::vector<std::string> warnings;
    resolve(spec_of(name), theory, warnings);
    ASSERT_EQ(warnings.size(), 1u) << name;
    EXPECT_TRUE(has(warnings[0], "assumes convex f_i")) << warnings[0];
  }
}

TEST(Assumptions, WarnOfQuorumsBelowOneAndCountSmallerSamples) {
  const Federation<double> f(10, 10);
  Theory theory;
  theory.n = 10;
  theory.d = 10;
  theory.smoothness = &f.smoothness;
  const auto step = [&](const char* name, double participation, double quorum, std::size_t expected) {
    AlgorithmSpec spec = spec_of(name);
    spec.participation = participation;
    theory.quorum = quorum;
    std::vector<std::string> warnings;
    const double gamma = std::stod(resolve(spec, theory, warnings).step_size);
    EXPECT_EQ(warnings.size(), expected) << name;
    return gamma;
  };
  EXPECT_EQ(step("sgd_nice", 0.8, 0.5, 1), step("sgd_nice", 0.4, 1, 0));
  EXPECT_EQ(step("frecon", 0.8, 0.5, 1), step("frecon", 0.4, 1, 0));
  EXPECT_EQ(step("gd", 1, 0.5, 1), step("gd", 1, 1, 0));
  EXPECT_EQ(step("cofig", 0.5, 0.5, 0), step("cofig", 0.5, 1, 0)) << "waits for all clients that it asked";
}

TEST(Resolve, WritesEveryNumberAndIsIdempotent) {
  const Federation<double> f(4, 10);
  for (const AlgorithmInfo& algorithm : all_algorithms()) {
    const bool dense = algorithm.traits.compressor_class == CompressorClass::kIdentity ||
                       algorithm.traits.name == "ef21_p" ||
                       (algorithm.traits.asynchronous && algorithm.traits.name != "fedbuff");
    const std::string compressor = dense ? "identity" : "natural";
    const AlgorithmSpec once =
        f.run_context(spec_of(std::string(algorithm.traits.name), compressor))->algorithm;
    EXPECT_FALSE(needed_constants(once).any()) << algorithm.traits.name;
    const AlgorithmSpec twice = f.run_context(once)->algorithm;
    EXPECT_EQ(once.step_size, twice.step_size);
    EXPECT_EQ(once.parameters, twice.parameters);
    EXPECT_EQ(once.compressor, twice.compressor);
  }
}

}  // namespace
}  // namespace gradwire
