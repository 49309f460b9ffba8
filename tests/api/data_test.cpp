// Samples of a program in place of a file.
#include "gradwire/data.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "gradwire/train.h"
#include "tests/api/api_support.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

constexpr std::size_t kSamples = 40, kWidth = 6;

struct Samples {
  std::vector<double> features, labels;
};

Samples samples() {
  Samples t;
  for (std::size_t r = 0; r < kSamples; ++r) {
    double sum = 0;
    for (std::size_t j = 0; j < kWidth; ++j) {
      const double value = (r * 7 + j * 3) % 5 == 0 ? 0 : std::sin(static_cast<double>(r * 11 + j));
      t.features.push_back(value);
      sum += value;
    }
    t.labels.push_back(sum > 0 ? 1 : -1);
  }
  return t;
}

Data sparse_of(const Samples& t) {
  std::vector<std::uint64_t> row_start = {0};
  std::vector<std::uint32_t> column;
  std::vector<double> value;
  for (std::size_t r = 0; r < kSamples; ++r) {
    for (std::size_t j = 0; j < kWidth; ++j)
      if (const double v = t.features[r * kWidth + j]; v != 0) column.push_back(j), value.push_back(v);
    row_start.push_back(value.size());
  }
  return Data::sparse(kWidth, row_start, column, value, t.labels);
}

Experiment logistic(const std::string& data) {
  return Experiment::from({{"problem.kind", "logistic"},
                           {"problem.data", data},
                           {"problem.normalize", "standard"},
                           {"clients.count", 5},
                           {"clients.partition", "iid"},
                           {"algorithm.name", "ef21"},
                           {"algorithm.compressor", "topk:k=2"},
                           {"algorithm.step_size", "theory"},
                           {"run.rounds", 50}});
}

TEST(Data, HasTheBitsOfTheSameSamplesInAFile) {
  const Samples t = samples();
  const TemporaryFolder folder;
  const auto file = folder.path() / "samples.svm";
  {
    std::ofstream out(file);
    out.precision(17);
    for (std::size_t r = 0; r < kSamples; ++r) {
      out << t.labels[r];
      for (std::size_t j = 0; j < kWidth; ++j)
        if (const double v = t.features[r * kWidth + j]; v != 0) out << ' ' << j + 1 << ':' << v;
      out << '\n';
    }
  }
  const TrainResult from_file = train(logistic("libsvm:" + file.string()));
  const Data dense = Data::dense(kWidth, t.features, t.labels);
  EXPECT_EQ(dense.rows(), kSamples);
  EXPECT_EQ(dense.columns(), kWidth);
  const TrainResult given = train(logistic("digits"), {.data = dense});
  EXPECT_EQ(model_of(given), model_of(from_file));
  EXPECT_EQ(given.experiment().get("problem.data"), "given");
  EXPECT_EQ(model_of(train(logistic("given"), {.data = sparse_of(t)})), model_of(from_file));
}

TEST(Data, MeasuresAccuracyOnGivenTestSamples) {
  const Samples t = samples();
  const Data data = Data::dense(kWidth, t.features, t.labels);
  std::vector<double> wrong = t.labels;
  for (double& label : wrong) label = -label;
  const TrainResult result = train(logistic("given").with("run.rounds", 400),
                                   {.data = data, .test = Data::dense(kWidth, t.features, wrong)});
  EXPECT_LT(result.rows().back().accuracy.value(), 0.3);  // labels are the opposite of what it learns
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

constexpr const char* kLibsvm = "# two features\n1 1:0.5 2:1\n-1 1:-1\n1 2:2\n-1 2:-0.25\n1 1:3\n";
constexpr const char* kTable =
    "kind,size,colour,weight\ncat,1.5,red,2\ndog,3,blue,\ncat,0.5,green,4\ndog,4,red,1\ncat,1,blue,2\n";

TEST(Data, IsReadFromATextAsFromAFile) {
  const TemporaryFolder folder;
  for (const auto& [source, text] : {std::pair("libsvm:", kLibsvm), {"csv:", kTable}}) {
    const auto file = folder.path() / "samples";
    write(file, text);
    const KeyValues table = {{"problem.label", "kind"}, {"problem.missing", "mean"}};
    const Experiment experiment =
        logistic(source + file.string()).with(source[0] == 'c' ? table : KeyValues()).with("run.rounds", 5);
    const TrainResult from_file = train(experiment),
                      from_text = train(experiment, {.data = Data::text(text)});
    EXPECT_EQ(model_of(from_text), model_of(from_file));
    EXPECT_EQ(from_text.warnings().size(), from_file.warnings().size());
    EXPECT_EQ(model_of(train(experiment, {.data = Data::text("\xEF\xBB\xBF" + std::string(text))})),
              model_of(from_file));
  }
}

TEST(Data, GivesTheTextsOfATestTableTheNumbersOfTheTrainingTable) {
  const TemporaryFolder folder;
  write(folder.path() / "train.csv", kTable);
  write(folder.path() / "test.csv", "kind,size,colour,weight\ndog,3.5,blue,1\ncat,1,red,2\n");
  const Experiment experiment = logistic("csv:" + (folder.path() / "train.csv").string())
                                    .with({{"problem.label", "kind"},
                                           {"problem.missing", "mean"},
                                           {"problem.test", "csv:" + (folder.path() / "test.csv").string()}});
  const TrainResult from_files = train(experiment);
  const TrainResult from_texts = train(
      experiment, {.data = Data::text(kTable),
                   .test = Data::text("kind,size,colour,weight\ndog,3.5,blue,1\ncat,1,red,2\n", "test")});
  EXPECT_EQ(model_of(from_texts), model_of(from_files));
  EXPECT_EQ(from_texts.metrics("accuracy"), from_files.metrics("accuracy"));
}

TEST(Data, NamesTheLineOfATextThatCannotBeRead) {
  const auto error = [](const char* text) {
    return error_of([&] { train(logistic("digits"), {.data = Data::text(text)}); });
  };
  EXPECT_EQ(error("1 1:0.5\n-1 1:x\n"), "data:2: the value 'x' is not a number; correct it");
  EXPECT_TRUE(error("1,2,1\n3,4\n").starts_with("data:2: ")) << error("1,2,1\n3,4\n");
  EXPECT_NE(error("size,kind\n1,0\n,1\n2,0\n").find("data:3: column 1, 'size'"), std::string::npos)
      << error("size,kind\n1,0\n,1\n2,0\n");
}

TEST(Data, IsMissingInOneLine) {
  const std::string error = error_of([] { train(logistic("given")); });
  EXPECT_NE(error.find("data 'given' needs a program that brings the samples"), std::string::npos) << error;
}

TEST(Data, RefusesShapesAndNumbersThatDoNotFit) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error_of([] {
              Data::dense(3, {1, 2, 3, 4}, {1, 2});
            }),
            "data: features has 4 numbers, but 6 are needed");
  EXPECT_EQ(error_of([&] { Data::dense(2, {1, nan}, {1}); }), "data: feature 1 of sample 0 is not finite");
  EXPECT_EQ(error_of([&] { Data::dense(1, {1}, {nan}); }), "data: the label of sample 0 is not finite");
  EXPECT_EQ(error_of([] {
              Data::sparse(3, {0, 1}, {0}, {1}, {1, 2});
            }),
            "data: row_start has 2 numbers, but 3 are needed");
  EXPECT_EQ(error_of([] {
              Data::sparse(3, {0, 2}, {0}, {1}, {1});
            }),
            "data: row_start must begin with 0 and end with the number of values, 1");
  EXPECT_EQ(error_of([] {
              Data::sparse(3, {0, 2, 1, 2}, {0, 1}, {1, 1}, {1, 1, 1});
            }),
            "data: row_start falls at sample 1");
  EXPECT_EQ(error_of([] {
              Data::sparse(3, {0, 2}, {1, 1}, {1, 1}, {1});
            }),
            "data: the columns of sample 0 must ascend and be below 3");
  EXPECT_EQ(error_of([] {
              Data::sparse(3, {0, 1}, {3}, {1}, {1});
            }),
            "data: the columns of sample 0 must ascend and be below 3");
  EXPECT_NE(error_of([] {
              train(logistic("given").with("problem.dim", 2),
                    {.data = Data::dense(3, {1, 2, 3, 4, 5, 6}, {1, -1})});
            }),
            "");
}

}  // namespace
}  // namespace gradwire
