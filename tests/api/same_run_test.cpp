// train() and `gradwire run` do the same run, and reject the same experiments with the same words.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "gradwire/train.h"
#include "report/columns.h"
#include "report/metrics_reader.h"
#include "tests/experiments/small_runs.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

class EachAlgorithm : public ::testing::TestWithParam<std::string> {};

TEST_P(EachAlgorithm, HasTheBitsOfGradwireRun) {
  const TemporaryFolder folder;
  const std::vector<Choice> choices = choices_of(find_algorithm(GetParam()));
  ASSERT_FALSE(choices.empty());
  for (const std::string precision : {"fp64", "fp32"}) {
    SCOPED_TRACE(precision);
    folder.write("same.toml", config(choices.front(), precision));
    ASSERT_EQ(
        run_gradwire(folder.path(), {"run", "same.toml", "--quiet", "--out", "program-" + precision}).code,
        0);
    const TrainResult result = train(Experiment::load(folder.path() / "same.toml"), {.threads = 3});
    result.save(folder.path() / "library");
    const std::filesystem::path program = folder.path() / ("program-" + precision);
    EXPECT_EQ(read_file(program / "model.bin"), read_file(folder.path() / "library/model.bin"));
    EXPECT_EQ(read_file(program / "config.toml"), read_file(folder.path() / "library/config.toml"));
    const std::vector<RoundRecord> rows = read_metrics(program / "metrics.csv");
    ASSERT_GT(rows.size(), 4u);
    for (const char* column : {"round", "loss", "grad_norm_sq", "accuracy", "bits_up", "bits_down",
                               "bytes_up", "bytes_down", "grad_calls", "replies", "bits_up_paper"}) {
      const std::vector<double> values = result.metrics(column);
      ASSERT_EQ(values.size(), rows.size());
      for (std::size_t k = 0; k < rows.size(); ++k)
        metric_columns(rows[k], [&](std::string_view name, const auto& value, std::string_view) {
          const std::optional<double> of_program = static_cast<std::optional<double>>(value);
          if (name == column && of_program) {
            EXPECT_EQ(*of_program, values[k]) << column << " in row " << k;
          }
        });
    }
    std::filesystem::remove_all(folder.path() / "library");
  }
}

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names;
  for (const AlgorithmInfo& algorithm : all_algorithms()) names.emplace_back(algorithm.traits.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, EachAlgorithm, ::testing::ValuesIn(algorithm_names()),
                         [](const auto& info) { return info.param; });

TEST(WrongExperiments, AreRejectedWithTheWordsOfGradwireRun) {
  const std::string problem = "[problem]\nkind = \"quadratic\"\ndim = 5\n",
                    gd = "[algorithm]\nname = \"gd\"\n";
  const std::vector<std::string> wrong = {
      "",
      "name = 3\n" + problem + gd,
      "[problem]\nkind = \"quadratik\"\ndim = 5\n" + gd,
      "[problem]\nkind = \"quadratic\"\n" + gd,
      "[problem]\nkind = \"custom\"\ndim = 5\n" + gd,
      problem,
      problem + "[algorithm]\nname = \"ef2\"\n",
      problem + gd + "compressor = \"topk:k=2\"\n",
      problem + "[algorithm]\nname = \"ef21\"\ncompressor = \"topk:k=0\"\n",
      problem + "[algorithm]\nname = \"ef21\"\ncompressor = \"topq:k=2\"\n",
      problem + "[algorithm]\nname = \"diana\"\ncompressor = \"topk:k=2\"\n",
      problem + gd + "step_size = -1\n",
      problem + gd + "step_size = \"teory\"\n",
      problem + gd + "[run]\nrounds = 1.5\n",
      problem + gd + "[run]\nround = 5\n",
      problem + gd + "[run]\nx0 = \"file:none.txt\"\n",
      problem + gd + "[clients]\ncount = 0\n",
      problem + gd + "[clients]\nparticipation = 2\n",
      problem + gd + "[server]\nquorum = 0\n",
      problem + gd + "[sweep]\nseed = [1, 2]\n",
      "[problem]\nkind = \"logistic\"\ndata = \"libsvm:none.txt\"\n" + gd,
      problem + gd + "[run\n",
  };
  const TemporaryFolder folder;
  std::filesystem::current_path(folder.path());
  for (const std::string& toml : wrong) {
    SCOPED_TRACE(toml);
    folder.write("wrong.toml", toml);
    const ProgramResult program = run_gradwire(folder.path(), {"run", "wrong.toml"});
    EXPECT_EQ(program.code, 2);
    std::string error = "no error";
    try {
      train(Experiment::load("wrong.toml"));
    } catch (const BadInput& e) {
      error = e.what();
    }
    EXPECT_EQ(program.err, "gradwire: " + error + "\n");
  }
}

}  // namespace
}  // namespace gradwire
