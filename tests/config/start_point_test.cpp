#include "config/start_point.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <sys/stat.h>

#include "base/config_error.h"
#include "base/half.h"
#include "config/experiment_file.h"
#include "engine/files/number_file.h"
#include "storage/model_file.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

ExperimentSpec quadratic(std::size_t d, const std::string& x0, std::uint64_t seed = 1) {
  return parse_experiment("seed = " + std::to_string(seed) +
                              "\n[problem]\nkind = \"quadratic\"\ndim = " + std::to_string(d) +
                              "\n[clients]\ncount = 3\n[algorithm]\nname = \"gd\"\n[run]\nx0 = \"" + x0 +
                              "\"\n",
                          "t.toml")
      .experiment;
}

std::string message_of(const ExperimentSpec& e, const std::filesystem::path& base) {
  try {
    start_point(e, {}, base);
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.key(), "run.x0");
    return error.what();
  }
  return "no error";
}

TEST(StartPoint, IsZerosOrTheStartOfTheModel) {
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
  for (const ProblemInfo& kind : problem_types()) {
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
    const DataSchema schema =
        text ? DataSchema{.alphabet = "ab"} : DataSchema{.columns = 64, .labels = {0, 1}};
    const auto x = start_point(e, schema, ".");
    EXPECT_EQ(x.size(), model_dim(problem_spec(e), schema));
    EXPECT_EQ(std::count(x.begin(), x.end(), 0.0), 0);
  }
}

TEST(StartPoint, ReadsNumbersAndModels) {
  const TemporaryFolder folder;
  folder.write("x.txt", "1\n-2.5e-3 \r\n\n 7");
  EXPECT_EQ(start_point(quadratic(3, "file:x.txt"), {}, folder.path()), (std::vector<double>{1, -2.5e-3, 7}));
  folder.write("y.txt",
               "\xef\xbb\xbf"
               "1\r-2.5e-3 \r\n\r\r7\r");
  EXPECT_EQ(start_point(quadratic(3, "file:y.txt"), {}, folder.path()), (std::vector<double>{1, -2.5e-3, 7}));
  const std::vector<float> model = {1.5f, -2, 3};
  write_model<float>(folder.path() / "model.bin", model);
  EXPECT_EQ(start_point(quadratic(3, "file:model.bin"), {}, folder.path()),
            (std::vector<double>{1.5, -2, 3}));
  ASSERT_TRUE(save_npy<float>(folder.path() / "x.npy", model));
  EXPECT_EQ(start_point(quadratic(3, "file:x.npy"), {}, folder.path()), (std::vector<double>{1.5, -2, 3}));
  ASSERT_TRUE(save_numbers<float>(folder.path() / "x.gwn", model));
  EXPECT_EQ(start_point(quadratic(3, "file:x.gwn"), {}, folder.path()), (std::vector<double>{1.5, -2, 3}));
}

TEST(StartPoint, ReadsNumbersOf16BitsExactly) {
  const TemporaryFolder folder;
  const std::vector<double> want = {1.5, -2, 0x1p-14};
  ASSERT_TRUE(save_npy<Float16>(folder.path() / "x.npy", std::vector<Float16>(want.begin(), want.end())));
  EXPECT_EQ(start_point(quadratic(3, "file:x.npy"), {}, folder.path()), want);
  ASSERT_TRUE(
      save_numbers<BFloat16>(folder.path() / "x.gwn", std::vector<BFloat16>(want.begin(), want.end())));
  EXPECT_EQ(start_point(quadratic(3, "file:x.gwn"), {}, folder.path()), want);
}

TEST(StartPoint, SaysWhatIsWrongWithAFile) {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& text, const std::string& message) {
    folder.write("x.txt", text);
    const std::string got = message_of(quadratic(3, "file:x.txt"), folder.path());
    EXPECT_NE(got.find(message), std::string::npos) << got;
  };
  refuses("1\n2\n", "holds 2 numbers, but the model of this experiment has 3");
  refuses("1\n2\n3\n4\n5\n", "holds 4 numbers or more, but the model of this experiment has 3");
  refuses("", "holds 0 numbers");
  refuses("1\nx\n3\n", "x.txt:2: expected one finite number");
  refuses("1\n2\nnan\n", "x.txt:3: expected one finite number");
  refuses("1 2\n3\n", "x.txt:1: expected one finite number");
  refuses(std::string("PK\x03\x04 numbers.npy"), "x.txt: is neither text nor a file of numbers");
  refuses(std::string(24, '\0'), "give a .npy, a .gwn, a model.bin, or text with a number in each line");
  const auto says = [&](const std::string& name, const std::string& message) {
    const std::string got = message_of(quadratic(3, "file:" + name), folder.path());
    EXPECT_NE(got.find(name + ": " + message), std::string::npos) << got;
  };
  says("absent", "cannot be read: No such file or directory");
  ASSERT_TRUE(save_npy<double>(folder.path() / "few.npy", std::vector<double>{1, 2}));
  says("few.npy", "holds 2 numbers, but the model of this experiment has 3");
  folder.write("cut.bin", "GWMODEL1 but no more");
  says("cut.bin", "is not a model.bin");
  const std::vector<std::byte> zeros(48);
  const NumbersHeader header = numbers_header(NumberType::kFp128, zeros);
  ASSERT_TRUE(replace_file(folder.path() / "wide.gwn", header.span(), zeros));
  says("wide.gwn", "holds numbers of fp128; a model is read from fp16, bfloat16, fp32 or fp64");
}

TEST(StartPoint, RejectsFoldersAndPipesWithoutAWriter) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder.path() / "below");
  for (const char* name : {"pipe", "below"}) {
    const std::string got = message_of(quadratic(3, std::string("file:") + name), folder.path());
    EXPECT_NE(got.find(std::string(name) + ": is not a regular file"), std::string::npos) << got;
  }
}

TEST(StartPoint, RejectsNumbersThatThePrecisionMakesInfinite) {
  const TemporaryFolder folder;
  ExperimentSpec e = quadratic(3, "file:x.npy");
  const auto message = [&](std::vector<double> x) {
    EXPECT_TRUE(save_npy<double>(folder.path() / "x.npy", x));
    return message_of(e, folder.path());
  };
  const std::string number = (folder.path() / "x.npy").string() + ": number 2 of 3 is ";
  EXPECT_EQ(message({1, std::nan(""), 3}), number + "nan; give a model of finite numbers");
  EXPECT_EQ(message({1, -INFINITY, 3}), number + "infinite; give a model of finite numbers");
  EXPECT_EQ(message({1, 1e300, 3}), "no error");
  e.precision = Precision::kFp32;
  EXPECT_EQ(message({1, 1e300, 3}),
            number + "1e+300, which precision = \"fp32\" cannot hold; write precision = \"fp64\"");
  EXPECT_EQ(message({1, 3e38, 3}), "no error");
  folder.write("x.npy", "1\n-1e300\n3\n");  // text
  EXPECT_EQ(message_of(e, folder.path()),
            number + "-1e+300, which precision = \"fp32\" cannot hold; write precision = \"fp64\"");
}

TEST(ClientWeights, AreSharesOfTheSamplesOnlyWhenAskedFor) {
  ExperimentSpec e = quadratic(3, "zeros");
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

TEST(RoundLimits, MeasureGradientNormsAtTheEndsOnAServerByDefault) {
  ExperimentSpec e = quadratic(3, "zeros");
  EXPECT_EQ(round_limits(e, false).grad_norm, GradNormRows::kEvery);
  EXPECT_EQ(round_limits(e, true).grad_norm, GradNormRows::kFirstAndLast);
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
