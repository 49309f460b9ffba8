// gradwire predict, and gradwire export as text.
#include <array>
#include <cmath>
#include <gtest/gtest.h>

#include "engine/data/readers/digits.h"
#include "tests/experiments/small_folder.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

constexpr const char* kPets = R"([problem]
kind = "logistic"
data = "pets.csv"
label = "animal"
normalize = "standard"
[clients]
count = 2
[algorithm]
name = "gd"
step_size = 0.5
[run]
rounds = 20
)";

constexpr const char* kPetsTable =
    "color,age,animal\nred,3,dog\nblue,2,cat\nred,5,dog\nblue,7,cat\ngreen,1,cat\nred,4,dog\n";

class Predict : public ::testing::Test {
 protected:
  void run(const std::string& name, const std::string& experiment) {
    folder_.write(name + ".toml", experiment);
    const auto r = run_gradwire(folder_.path(), {"run", name + ".toml", "--quiet", "--overwrite"});
    EXPECT_EQ(r.code, 0) << r.err;
  }
  ProgramResult evaluate(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "evaluate");
    return run_gradwire(folder_.path(), arguments);
  }
  ProgramResult predict(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "predict");
    return run_gradwire(folder_.path(), arguments);
  }
  TemporaryFolder folder_;
};

TEST_F(Predict, PredictsTheClassOfEachRow) {
  folder_.write("pets.csv", kPetsTable);
  run("pets", kPets);
  folder_.write("new.csv", "color,age\nblue,2\nred,4\nviolet,3\n");
  const auto printed = predict({"results/pets", "--data", "new.csv"});
  ASSERT_EQ(printed.code, 0) << printed.err;
  const auto lines = lines_of(printed.out);
  ASSERT_EQ(lines.size(), 4u) << printed.out;
  EXPECT_EQ(lines[0], "row,class,probability");
  EXPECT_TRUE(lines[1].starts_with("1,cat,0.")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("2,dog,0.")) << lines[2];
  // A column with labels changes nothing, whatever they are.
  folder_.write("new.csv", "animal,color,age\ndog,blue,2\n,red,4\nfish,violet,3\n");
  const auto written =
      predict({"results/pets/model.bin", "pets.toml", "--data", "new.csv", "--out", "p.csv"});
  EXPECT_EQ(written.out, "p.csv: 3 predictions\n") << written.err;
  EXPECT_EQ(read_file(folder_.path() / "p.csv"), printed.out);
  // log(1 + e^-z) of a correct class is -log of its probability.
  folder_.write("new.csv", "color,age,animal\nblue,2,cat\n");
  const auto loss = evaluate({"results/pets", "--data", "new.csv", "--json"});
  const double probability = std::stod(lines[1].substr(lines[1].rfind(',') + 1));
  EXPECT_NEAR(std::stod(loss.out.substr(loss.out.find(':') + 1)), -std::log(probability), 1e-12);
  folder_.write("new.csv", "age,color\n2,blue\n");
  const auto swapped = predict({"results/pets", "--data", "new.csv"});
  EXPECT_EQ(swapped.code, 2);
  EXPECT_NE(swapped.err.find("both need the same columns in the same order"), std::string::npos)
      << swapped.err;
}

TEST_F(Predict, PredictsAsOftenRightAsTheAccuracySays) {
  run("digits", kDigitsExperiment);
  const auto accuracy = evaluate({"results/digits", "--data", "digits", "--json"});
  const auto r = predict({"results/digits", "--data", "digits"});
  ASSERT_EQ(r.code, 0) << r.err;
  const auto lines = lines_of(r.out);
  const std::vector<double> labels = read_digits().label;
  ASSERT_EQ(lines.size(), labels.size() + 1);
  double right = 0;
  for (std::size_t k = 0; k < labels.size(); ++k)
    right += std::stod(lines[k + 1].substr(lines[k + 1].find(',') + 1)) == labels[k] ? 1 : 0;
  EXPECT_GT(right, 300);
  EXPECT_NEAR(std::stod(accuracy.out.substr(accuracy.out.find("accuracy\":") + 10)),
              right / static_cast<double>(labels.size()), 1e-12)
      << accuracy.out;
}

TEST_F(Predict, PredictsValues) {
  folder_.write("line.csv", "x,y\n1,2\n2,4\n3,6\n4,8\n");
  folder_.write("x.txt", "2\n0.5\n");
  run("line",
      "[problem]\nkind = \"least_squares\"\ndata = \"line.csv\"\nbias = true\n[clients]\ncount = "
      "1\n[algorithm]\nname = \"gd\"\nstep_size = 0.1\n[run]\nx0 = \"file:x.txt\"\nrounds = 0\n");
  folder_.write("new.csv", "x\n10\n20\n");
  const auto r = predict({"results/line", "--data", "new.csv"});
  EXPECT_EQ(r.out, "row,value\n1,20.5\n2,40.5\n") << r.err;
  // A column that is not a feature is not taken for one.
  folder_.write("new.csv", "id,x\n1,10\n2,20\n");
  const auto other = predict({"results/line", "--data", "new.csv"});
  EXPECT_EQ(other.code, 2) << other.out;
  EXPECT_NE(other.err.find("the data have the feature \"id\" where the model's training data had \"x\""),
            std::string::npos)
      << other.err;
  EXPECT_EQ(predict({"results/line", "--data", "new.csv", "--set", "problem.columns=x"}).out, r.out);
  EXPECT_EQ(run_gradwire(folder_.path(), {"export", "results/line", "w.csv"}).code, 0);
  EXPECT_EQ(read_file(folder_.path() / "w.csv"), "parameter,value\nx,2\nbias,0.5\n");
  EXPECT_EQ(run_gradwire(folder_.path(), {"export", "results/line", "w.txt"}).code, 0);
  EXPECT_EQ(read_file(folder_.path() / "w.txt"), "2\n0.5\n");
}

TEST_F(Predict, ExportsCoefficientsInOriginalUnits) {
  folder_.write("line.csv", "x,z,y\n1,10,2\n2,30,4\n3,10,6\n4,50,8\n");
  const auto written = [&](const std::string& keys) {
    run("line", "[problem]\nkind = \"least_squares\"\ndata = \"line.csv\"\n" + keys +
                    "[clients]\ncount = 1\n[algorithm]\nname = \"gd\"\nstep_size = 0.5\n[run]\n"
                    "rounds = 20000\nevaluate_every = 20000\n");
    EXPECT_EQ(run_gradwire(folder_.path(), {"export", "results/line", "w.csv"}).code, 0);
    return lines_of(read_file(folder_.path() / "w.csv"));
  };
  const auto last = [](const std::string& line) { return std::stod(line.substr(line.rfind(',') + 1)); };
  // y = 2 x, whatever the features went through.
  for (const char* kind : {"standard", "minmax"}) {
    const auto lines = written("bias = true\nnormalize = \"" + std::string(kind) + "\"\n");
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(lines[0], "parameter,value,in_original_units");
    EXPECT_TRUE(lines[1].starts_with("x,") && lines[2].starts_with("z,") && lines[3].starts_with("bias,"));
    EXPECT_NEAR(last(lines[1]), 2, 1e-3) << kind;
    EXPECT_NEAR(last(lines[2]), 0, 1e-3) << kind;
    EXPECT_NEAR(last(lines[3]), 0, 1e-2) << kind;
  }
  // Without a bias, the shift of the features is one.
  const auto without = written("normalize = \"standard\"\n");
  ASSERT_EQ(without.size(), 4u);
  EXPECT_TRUE(without[3].starts_with("bias,0,")) << without[3];
  EXPECT_NEAR(last(without[3]), -5, 1e-2);
}

TEST_F(Predict, RefusesWhatAModelCannotPredict) {
  const std::string others =
      "[clients]\ncount = 1\n[algorithm]\nname = \"gd\"\nstep_size = 0.1\n[run]\nrounds = 1\n";
  run("q", "[problem]\nkind = \"quadratic\"\ndim = 5\n" + others);
  folder_.write("t.txt", "to be or not to be, that is the question\n");
  run("c", "[problem]\nkind = \"char_mlp\"\ndata = \"text:t.txt\"\ncontext = 2\nwidth = 2\nhidden = [2]\n" +
               others);
  run("digits", kDigitsExperiment);
  std::filesystem::remove(folder_.path() / "results/digits/summary.json");
  for (const auto& [name, data, error] :
       {std::array{"q", "new.csv", "problem.kind = \"quadratic\" has no data"},
        {"c", "t.txt", "problem.kind = \"char_mlp\" does not predict from rows; logistic"},
        {"digits", "digits", "has no summary.json next to it"}}) {
    const auto r = predict({"results/" + std::string(name), "--data", data});
    EXPECT_EQ(r.code, 2);
    EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
    EXPECT_NE(r.err.find(error), std::string::npos) << r.err;
  }
}

}  // namespace
}  // namespace gradwire
