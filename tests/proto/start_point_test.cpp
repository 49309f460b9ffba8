#include "proto/config/start_point.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

#include "base/config_error.h"
#include "engine/files/number_file.h"
#include "proto/config/experiment_file.h"
#include "proto/store/model_file.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

Experiment quadratic(std::size_t d, const std::string& x0, std::uint64_t seed = 1) {
  return parse_experiment("seed = " + std::to_string(seed) +
                              "\n[problem]\nkind = \"quadratic\"\ndim = " + std::to_string(d) +
                              "\n[clients]\ncount = 3\n[algorithm]\nname = \"gd\"\n[run]\nx0 = \"" + x0 +
                              "\"\n",
                          "t.toml")
      .experiment;
}

std::string message_of(const Experiment& e, const std::filesystem::path& base) {
  try {
    start_point(e, {}, base);
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.key(), "run.x0");
    return error.what();
  }
  return "no error";
}

TEST(StartPoint, IsZerosOrWhatTheModelSays) {
  EXPECT_EQ(start_point(quadratic(4, "zeros"), {}, "."), std::vector<double>(4));
  EXPECT_EQ(start_point(quadratic(4, "model"), {}, "."), (std::vector<double>{2, 0, 0, 0}));
}

TEST(StartPoint, NormalIsAFunctionOfTheSeedWithTheRightMoments) {
  const auto x = start_point(quadratic(20001, "normal"), {}, ".");
  EXPECT_EQ(x, start_point(quadratic(20001, "normal"), {}, "."));
  EXPECT_NE(x, start_point(quadratic(20001, "normal", 2), {}, "."));
  double mean = 0, square = 0, fourth = 0, neighbours = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    mean += x[j] / 20001;
    square += x[j] * x[j] / 20001;
    fourth += std::pow(x[j], 4) / 20001;
    if (j > 0) neighbours += x[j] * x[j - 1] / 20000;
  }
  // Five standard deviations each.
  EXPECT_NEAR(mean, 0, 5 / std::sqrt(20001.));
  EXPECT_NEAR(square, 1, 5 * std::sqrt(2 / 20001.));
  EXPECT_NEAR(fourth, 3, 5 * std::sqrt(96 / 20001.));
  EXPECT_NEAR(neighbours, 0, 5 / std::sqrt(20000.));
}

TEST(StartPoint, NormalHasTheDimensionOfEveryKind) {
  for (const ProblemKind& kind : problem_kinds()) {
    SCOPED_TRACE(kind.name);
    const bool text = kind.data == DataForm::kText;
    const auto e =
        parse_experiment(
            "[problem]\nkind = \"" + std::string(kind.name) + "\"\n" +
                (kind.needs_data() ? text ? "data = \"text:t\"\n" : "data = \"digits\"\n" : "dim = 5\n") +
                (kind.name == "cnn" ? "filters = [6]\n" : "") +
                "[algorithm]\nname = \"gd\"\nstep_size = 1\n[run]\nx0 = \"normal\"\n",
            "t.toml")
            .experiment;
    const Agreement agreement =
        text ? Agreement{.alphabet = "ab"} : Agreement{.columns = 64, .labels = {0, 1}};
    const auto x = start_point(e, agreement, ".");
    EXPECT_EQ(x.size(), model_dim(problem_spec(e), agreement));
    EXPECT_EQ(std::count(x.begin(), x.end(), 0.0), 0);
  }
}

TEST(StartPoint, ReadsNumbersAndModels) {
  const TemporaryFolder folder;
  folder.write("x.txt", "1\n-2.5e-3 \r\n\n 7");
  EXPECT_EQ(start_point(quadratic(3, "file:x.txt"), {}, folder.path()), (std::vector<double>{1, -2.5e-3, 7}));
  const std::vector<float> model = {1.5f, -2, 3};
  write_model<float>(folder.path() / "model.bin", model);
  EXPECT_EQ(start_point(quadratic(3, "file:model.bin"), {}, folder.path()),
            (std::vector<double>{1.5, -2, 3}));
  ASSERT_TRUE(save_npy<float>(folder.path() / "x.npy", model));
  EXPECT_EQ(start_point(quadratic(3, "file:x.npy"), {}, folder.path()), (std::vector<double>{1.5, -2, 3}));
  ASSERT_TRUE(save_numbers<float>(folder.path() / "x.gwn", model));
  EXPECT_EQ(start_point(quadratic(3, "file:x.gwn"), {}, folder.path()), (std::vector<double>{1.5, -2, 3}));
}

TEST(StartPoint, SaysWhatIsWrongWithAFile) {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& text, const std::string& message) {
    folder.write("x.txt", text);
    const std::string got = message_of(quadratic(3, "file:x.txt"), folder.path());
    EXPECT_NE(got.find(message), std::string::npos) << got;
  };
  refuses("1\n2\n", "holds 2 numbers, but the model of this experiment has 3");
  refuses("1\n2\n3\n4\n5\n", "holds more numbers, but the model of this experiment has 3");
  refuses("", "holds 0 numbers");
  refuses("1\nx\n3\n", "x.txt:2: expected one finite number");
  refuses("1\n2\nnan\n", "x.txt:3: expected one finite number");
  refuses("1 2\n3\n", "x.txt:1: expected one finite number");
  EXPECT_NE(message_of(quadratic(3, "file:absent"), folder.path()).find("cannot be opened"),
            std::string::npos);
}

TEST(ClientWeights, AreSharesOfTheSamplesOnlyWhenAskedFor) {
  Experiment e = quadratic(3, "zeros");
  const std::vector<std::uint64_t> counts = {1, 2, 5};
  EXPECT_TRUE(client_weights(e, counts).empty());
  e.clients.weights = Weighting::kSamples;
  EXPECT_EQ(client_weights(e, counts), (std::vector<double>{0.125, 0.25, 0.625}));
  EXPECT_TRUE(client_weights(e, std::vector<std::uint64_t>{0, 0, 0}).empty());
}

TEST(RoundLimits, ComeFromTheExperiment) {
  const auto e =
      parse_experiment(
          "[problem]\nkind = \"quadratic\"\ndim = 2\n[algorithm]\nname = \"gd\"\n[run]\nrounds = 7\n"
          "evaluate_every = 2\nstop_at_grad_norm_sq = 1e-3\n[server]\nquorum = 0.5\ndeadline_ms = 1500\n",
          "t.toml")
          .experiment;
  const RoundLimits limits = round_limits(e, /*over_network=*/false);
  EXPECT_EQ(limits.rounds, 7u);
  EXPECT_EQ(limits.evaluate_every, 2u);
  EXPECT_EQ(limits.stop_at_grad_norm_sq, 1e-3);
  EXPECT_EQ(limits.quorum, 0.5);
  EXPECT_EQ(limits.deadline_seconds, 1.5);
  EXPECT_EQ(limits.grad_norm, GradNormRows::kEvery);
  EXPECT_EQ(limits.evaluated_share, 1);
}

TEST(RoundLimits, OfAServerByItselfMeasureGradientNormsAtTheEndsUnlessTheyAreAskedFor) {
  Experiment e = quadratic(3, "zeros");
  EXPECT_EQ(round_limits(e, false).grad_norm, GradNormRows::kEvery);
  EXPECT_EQ(round_limits(e, true).grad_norm, GradNormRows::kEnds);
  e.run.stop_at_grad_norm_sq = 1e-9;
  EXPECT_EQ(round_limits(e, true).grad_norm, GradNormRows::kEvery);
  e.run.stop_at_grad_norm_sq = 0;
  e.evaluation = {.grad_norm = GradNorm::kEvery, .clients = 0.25};
  EXPECT_EQ(round_limits(e, true).grad_norm, GradNormRows::kEvery);
  EXPECT_EQ(round_limits(e, true).evaluated_share, 0.25);
  e.evaluation.grad_norm = GradNorm::kNone;
  for (const bool over_network : {false, true})
    EXPECT_EQ(round_limits(e, over_network).grad_norm, GradNormRows::kNone);
}

}  // namespace
}  // namespace gradwire
