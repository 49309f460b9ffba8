// gradwire new: an experiment file for the user's data.
#include <gtest/gtest.h>

#include "config/experiment_file.h"
#include "engine/problems/problem.h"
#include "report/metrics_reader.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

class NewExperiment : public ::testing::Test {
 protected:
  ProgramResult gradwire(const std::vector<std::string>& arguments) const {
    return run_gradwire(folder_.path(), arguments);
  }
  fs::path path(const std::string& name) const { return folder_.path() / name; }

  // Writes NAME.toml for the data, runs it as it is written, and returns the experiment.
  ExperimentSpec made_and_run(const std::string& name, const std::string& data) const {
    const ProgramResult made = gradwire({"new", name, "--data", data});
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(made.out, name + ".toml\n");
    const ProgramResult run =
        gradwire({"run", name + ".toml", "--out", "out-" + fs::path(name).filename().string()});
    EXPECT_EQ(run.code, 0) << run.err;
    const auto rows = read_metrics(path("out-" + fs::path(name).filename().string()) / "metrics.csv");
    EXPECT_LT(rows.back().loss, 0.9 * rows.front().loss) << "the run learns something";
    return load_experiment(path(name + ".toml")).experiment;
  }

  TemporaryFolder folder_;
};

// Returns `count` rows whose label is a function of two features.
template <class Label>
std::string rows(int count, const Label& label, bool libsvm = false) {
  std::string text;
  for (int k = 0; k < count; ++k) {
    const double a = (k * 7) % 11 / 11.0, b = (k * 5) % 13 / 13.0;
    text += libsvm ? label(a, b) + " 1:" + std::to_string(a) + " 2:" + std::to_string(b) + "\n"
                   : std::to_string(a) + "," + std::to_string(b) + "," + label(a, b) + "\n";
  }
  return text;
}
std::string two_classes(double a, double b) { return a > b ? "1" : "0"; }
std::string three_classes(double a, double b) { return a > 2 * b ? "2" : a > b ? "1" : "0"; }
std::string a_number(double a, double b) { return std::to_string(3 * a - b + 0.5); }

TEST_F(NewExperiment, ChoosesTheProblemByTheLabels) {
  folder_.write("two.csv", rows(90, two_classes));
  folder_.write("three.csv", rows(300, three_classes));
  folder_.write("number.csv", rows(300, a_number));
  const ExperimentSpec two = made_and_run("two", "two.csv");
  EXPECT_EQ(problem_type_name(two), "logistic");
  EXPECT_EQ(sources_of(two.problem)->data, "csv:two.csv");
  EXPECT_NE(read_file(path("two.toml")).find("normalize = \"standard\""), std::string::npos);
  EXPECT_EQ(two.clients.count, 4u) << "twenty samples for each client";
  EXPECT_EQ(two.name, "two");
  const ExperimentSpec three = made_and_run("three", "csv:three.csv");
  EXPECT_EQ(problem_type_name(three), "mlp");
  EXPECT_EQ(three.clients.count, 10u);
  EXPECT_EQ(problem_type_name(made_and_run("number", "number.csv")), "least_squares");
}

// A table as people have it: row numbers, texts, a missing value, and the label in the middle.
std::string penguins() {
  std::string text = "Nr;mass;species;island;year\n";
  for (int k = 0; k < 90; ++k) {
    const char* const species[] = {"Adelie", "Chinstrap", "Gentoo"};
    text += std::to_string(k + 1) + ";" +
            (k % 30 == 7 ? "NA" : std::to_string(3000 + 900 * (k % 3) + k % 7)) + ";" + species[k % 3] + ";" +
            (k % 2 == 0 ? "Dream" : "Biscoe") + ";" + std::to_string(2007 + k % 2) + "\n";
  }
  return text;
}

TEST_F(NewExperiment, SaysWhichColumnIsTheLabelAndTakesAnother) {
  folder_.write("penguins.csv", penguins());
  const ProgramResult r = gradwire({"new", "p", "--data", "penguins.csv", "--label", "species"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "p.toml\n");
  EXPECT_NE(
      r.err.find("label: species: Adelie, Chinstrap, Gentoo; 3 classes; columns: Nr, mass, species, island, "
                 "year; --label COLUMN takes another"),
      std::string::npos)
      << r.err;
  const std::string text = read_file(path("p.toml"));
  for (const char* line :
       {"# The columns: Nr, mass, species, island, year.\n", "label = \"species\"\n",
        "# Without Nr (another value in each line):\n", "columns = \"2, 4-5\"\n",
        "missing = \"drop\"        # leaves out the 3 of 90 lines", "normalize = \"standard\""})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  const ProgramResult run = gradwire({"run", "p.toml", "--out", "out"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_GT(*read_metrics(path("out/metrics.csv")).back().accuracy, 0.9) << "the mass alone decides";
  const ProgramResult last = gradwire({"new", "q", "--data", "penguins.csv"});
  EXPECT_EQ(last.code, 0) << last.err;
  EXPECT_NE(last.err.find("label: year: 2007, 2008; 2 classes"), std::string::npos) << last.err;
}

TEST_F(NewExperiment, WritesTheKeysOfTheCommandLineIntoTheFile) {
  folder_.write("penguins.csv", penguins());
  const ProgramResult r =
      gradwire({"new", "p", "--data", "penguins.csv", "--label", "year", "--missing", "mean", "--columns",
                "2,4", "--set", "clients.count=3", "--algorithm", "ef21", "--compressor", "topk:k=1"});
  ASSERT_EQ(r.code, 0) << r.err;
  const ExperimentSpec e = load_experiment(path("p.toml")).experiment;
  EXPECT_EQ(e.clients.count, 3u);
  EXPECT_EQ(e.algorithm.name, "ef21");
  EXPECT_EQ(e.algorithm.compressor, "topk:k=1");
  EXPECT_EQ(rows_of(e.problem)->missing, MissingValues::kMean);
  EXPECT_EQ(rows_of(e.problem)->columns, "2,4");
  const ProgramResult wrong = gradwire({"new", "w", "--data", "penguins.csv", "--label", "specie"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("has no column 'specie'; it has 5 columns: Nr, mass"), std::string::npos)
      << wrong.err;
  EXPECT_FALSE(fs::exists(path("w.toml")));
}

TEST_F(NewExperiment, RecognisesTheFormatOfAFile) {
  folder_.write("data/two", rows(60, two_classes, true));
  folder_.write("data/two.txt", rows(60, two_classes));
  folder_.write("data/prose.txt", std::string(300, 'a') + "\nbcd efg\n" + std::string(300, 'h') + "\n");
  EXPECT_EQ(sources_of(made_and_run("a", "data/two").problem)->data, "libsvm:data/two");
  EXPECT_EQ(sources_of(made_and_run("b", "data/two.txt").problem)->data, "csv:data/two.txt");
  EXPECT_EQ(problem_type_name(made_and_run("c", "data/prose.txt")), "char_mlp");
}

TEST_F(NewExperiment, NamesTheDataRelativeToItsOwnFolder) {
  folder_.write("data/two.csv", rows(60, two_classes));
  fs::create_directory(path("experiments"));
  EXPECT_EQ(sources_of(made_and_run("experiments/two", "data/two.csv").problem)->data, "csv:../data/two.csv");
  const std::string absolute = path("data/two.csv").string();
  EXPECT_EQ(sources_of(made_and_run("experiments/far", absolute).problem)->data, "csv:" + absolute);
}

TEST_F(NewExperiment, AcceptsTheSourcesOfAnExperiment) {
  const ExperimentSpec digits = made_and_run("digits", "digits");
  EXPECT_EQ(problem_type_name(digits), "mlp");
  EXPECT_GT(*read_metrics(path("out-digits/metrics.csv")).back().accuracy, 0.9);
}

TEST_F(NewExperiment, ReplacesNoFileAndWritesNoneForBadData) {
  folder_.write("two.csv", rows(60, two_classes));
  folder_.write("mine.toml", "mine");
  const auto refusal = [&](const std::string& name, const std::string& data) {
    const ProgramResult r = gradwire({"new", name, "--data", data});
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
    return r.err;
  };
  EXPECT_NE(refusal("mine", "two.csv").find("mine.toml: exists already"), std::string::npos);
  EXPECT_EQ(read_file(path("mine.toml")), "mine");
  EXPECT_NE(refusal("x", "absent.csv").find("absent.csv"), std::string::npos);
  folder_.write("same.csv", rows(60, [](double, double) { return std::string("1"); }));
  EXPECT_NE(refusal("x", "same.csv").find("one label only"), std::string::npos);
  EXPECT_NE(refusal("no-such-folder/x", "two.csv").find("no-such-folder/x.toml: cannot be written"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(path("x.toml")));
}

}  // namespace
}  // namespace gradwire
