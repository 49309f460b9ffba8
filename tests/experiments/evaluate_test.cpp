// gradwire evaluate: the measurements of a model equal those of its run.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

#include "tests/experiments/small_folder.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

class Evaluate : public ::testing::Test {
 protected:
  Evaluate() {
    folder_.write("digits.toml", kDigitsExperiment);
    EXPECT_EQ(run_gradwire(folder_.path(), {"run", "digits.toml", "--quiet"}).code, 0);
  }
  ProgramResult evaluate(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "evaluate");
    return run_gradwire(folder_.path(), arguments);
  }
  // Returns a number in the last line of the run's metrics.csv.
  std::string last(std::size_t column) {
    std::string line = lines_of(read_file(folder_.path() / "results/digits/metrics.csv")).back();
    for (; column > 0; --column) line = line.substr(line.find(',') + 1);
    return line.substr(0, line.find(','));
  }
  TemporaryFolder folder_;
};

TEST_F(Evaluate, GivesTheLastMeasurementsOfTheRun) {
  const auto r = evaluate({"results/digits/model.bin", "digits.toml", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(lines_of(r.out).size(), 1u);
  for (const auto& [key, column] : {std::pair{"loss", 1}, {"grad_norm_sq", 2}, {"accuracy", 3}}) {
    const std::size_t at = r.out.find("\"" + std::string(key) + "\":");
    ASSERT_NE(at, std::string::npos) << r.out;
    EXPECT_EQ(std::stod(r.out.substr(at + std::string(key).size() + 3)),
              std::stod(last(static_cast<std::size_t>(column))))
        << key;
  }
  const auto text = evaluate({"results/digits/model.bin", "digits.toml"});
  EXPECT_EQ(text.out.substr(0, 5), "loss ");
  EXPECT_NE(text.out.find("accuracy "), std::string::npos) << text.out;
  EXPECT_EQ(std::filesystem::directory_iterator(folder_.path() / "results")->path().filename(), "digits");
}

TEST_F(Evaluate, MeasuresAModelOnDataThatLackItsLastClassAndFeature) {
  std::string all, some;
  for (int k = 0; k < 30; ++k)
    all += std::to_string(k % 3) + " 1:" + std::to_string(k) + " 2:0.5 3:" + std::to_string(k % 4 + 1) + "\n";
  for (int k = 0; k < 8; ++k) some += std::to_string(k % 2) + " 1:" + std::to_string(k) + " 2:1\n";
  folder_.write("all.txt", all);
  folder_.write("some.txt", some);
  const std::vector<std::string> on_all = {"--set", "problem.data=libsvm:all.txt"};
  ASSERT_EQ(
      run_gradwire(folder_.path(), {"run", "digits.toml", "--quiet", "--out", "o", on_all[0], on_all[1]})
          .code,
      0);
  const std::vector<std::string> on_some = {
      "o/model.bin", "digits.toml",         "--json", "--set", "problem.data=libsvm:some.txt",
      "--set",       "problem.test_share=0"};
  const auto found = evaluate(on_some);
  ASSERT_EQ(found.code, 0) << found.err;
  // The same samples, and one more with the missing class and feature.
  folder_.write("some.txt", some + "2 3:1\n");
  const auto wider = evaluate(on_some);
  EXPECT_EQ(wider.code, 0) << wider.err;
  EXPECT_NE(wider.out, found.out);
  folder_.write("some.txt", some);
  folder_.write("some.txt", some + "7 3:1\n8 3:1\n");
  const auto more = evaluate(on_some);
  EXPECT_EQ(more.code, 2);
  EXPECT_NE(more.err.find(
                "the labels of the data (4: 0, 1, 7, 8) are not those of the model's training (3: 0, 1, 2)"),
            std::string::npos)
      << more.err;
  folder_.write("some.txt", some + "7 3:1\n");
  const auto other = evaluate(on_some);
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_NE(other.err.find("they are matched in ascending order"), std::string::npos) << other.err;
  folder_.write("some.txt", some);
  std::filesystem::remove(folder_.path() / "o/summary.json");
  const auto unknown = evaluate(on_some);
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("set problem.dim to the number that it was trained with"), std::string::npos)
      << unknown.err;
}

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

TEST_F(Evaluate, ReadsATableAsTheRunReadIt) {
  folder_.write("pets.csv", kPetsTable);
  // Alone, this table has another first color, one label, and other means.
  folder_.write("more.csv", "color,age,animal\nred,30,dog\nviolet,20,dog\n");
  folder_.write("pets.toml", kPets);
  const auto run = run_gradwire(folder_.path(), {"run", "pets.toml"});
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string model = "results/pets/model.bin";
  const auto same = evaluate({model, "pets.toml", "--json"});
  ASSERT_EQ(same.code, 0) << same.err;
  const std::string metrics = read_file(folder_.path() / "results/pets/metrics.csv");
  const std::string row = lines_of(metrics).back();
  const std::string loss = row.substr(row.find(',') + 1);
  EXPECT_EQ(std::stod(same.out.substr(same.out.find(':') + 1)), std::stod(loss)) << same.out << row;

  const std::vector<std::string> on_more = {
      model, "pets.toml", "--json", "--set", "problem.data=csv:more.csv", "--set", "clients.count=1"};
  const auto more = evaluate(on_more);
  ASSERT_EQ(more.code, 0) << more.err;
  // By hand: red and violet dogs, with the features blue, green, red, age of the run.
  const std::vector<double> x = [&] {
    std::vector<double> numbers;
    const std::string bytes = read_file(folder_.path() / model);
    for (std::size_t k = 0; k < 4; ++k) {
      double number = 0;
      std::memcpy(&number, bytes.data() + 24 + 8 * k, 8);
      numbers.push_back(number);
    }
    return numbers;
  }();
  const auto loss_of = [&](double blue, double green, double red, double age) {
    const auto standard = [](double value, double mean, double squares) {
      return (value - mean) / std::sqrt(squares - mean * mean);
    };
    const double z = x[0] * standard(blue, 2.0 / 6, 2.0 / 6) + x[1] * standard(green, 1.0 / 6, 1.0 / 6) +
                     x[2] * standard(red, 0.5, 0.5) + x[3] * standard(age, 22.0 / 6, 104.0 / 6);
    return std::log1p(std::exp(-z));
  };
  EXPECT_NEAR(std::stod(more.out.substr(more.out.find(':') + 1)),
              (loss_of(0, 0, 1, 30) + loss_of(0, 0, 0, 20)) / 2, 1e-12)
      << more.out;

  const auto other = evaluate({model, "pets.toml", "--set", "problem.normalize=none"});
  EXPECT_EQ(other.code, 0);
  EXPECT_NE(other.err.find("the model was trained with problem.normalize = \"standard\", which replaces "
                           "\"none\" of the experiment"),
            std::string::npos)
      << other.err;
  std::filesystem::rename(folder_.path() / "results/pets/preprocessing.json", folder_.path() / "saved.json");
  const auto without = evaluate({model, "pets.toml"});
  EXPECT_NE(without.err.find("there is no preprocessing.json next to the model"), std::string::npos)
      << without.err;
  folder_.write("results/pets/preprocessing.json", "{\"normalize\": {\"kind\": \"standard\"}}");
  const auto damaged = evaluate({model, "pets.toml"});
  EXPECT_EQ(damaged.code, 2);
  EXPECT_NE(damaged.err.find("preprocessing.json: is damaged"), std::string::npos) << damaged.err;
  // A run without preprocessing removes the file of an earlier one.
  ASSERT_EQ(
      run_gradwire(folder_.path(), {"run", "digits.toml", "--quiet", "--set", "problem.normalize=minmax",
                                    "--out", "results/digits", "--overwrite"})
          .code,
      0);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "results/digits/preprocessing.json"));
  ASSERT_EQ(run_gradwire(folder_.path(), {"run", "digits.toml", "--quiet", "--overwrite"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "results/digits/preprocessing.json"));
}

TEST_F(Evaluate, MeasuresOtherDataWithTheFolderAlone) {
  folder_.write("pets.csv", kPetsTable);
  folder_.write("pets.toml", kPets);
  ASSERT_EQ(run_gradwire(folder_.path(), {"run", "pets.toml", "--quiet"}).code, 0);
  folder_.write("one.csv", "color,age,animal\nred,4,cat\n");
  const auto one = evaluate({"results/pets", "--data", "one.csv"});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_NE(one.out.find("accuracy 0.00 %"), std::string::npos) << one.out;
  folder_.write("one.csv", "color,age,animal\nred,4,cat\nred,4,dog\nblue,2,cat\n");
  const auto three = evaluate({"results/pets", "--data", "one.csv"});
  EXPECT_NE(three.out.find("accuracy 66.67 %"), std::string::npos) << three.out << three.err;
  // The same as before --data was there.
  for (const std::string key : {"problem.data", "problem.test"})
    EXPECT_EQ(evaluate({"results/pets/model.bin", "pets.toml", "--set", key + "=csv:one.csv"}).out,
              three.out);
  // The training data are not needed.
  std::filesystem::rename(folder_.path() / "pets.csv", folder_.path() / "hidden.csv");
  EXPECT_EQ(evaluate({"results/pets", "pets.toml", "--data", "one.csv"}).out, three.out);
  EXPECT_EQ(evaluate({"results/pets", "--data", "absent.csv"}).code, 2);
  const auto table = evaluate({"results/pets", "one.csv"});
  EXPECT_EQ(table.code, 2);
  EXPECT_NE(table.err.find("one.csv: is data, not an experiment; name data with --data one.csv"),
            std::string::npos)
      << table.err;
}

TEST_F(Evaluate, TakesTheMeansOfTheTrainingData) {
  folder_.write("gaps.csv", "age,y\n1,0\n,1\n3,0\n8,1\n");
  folder_.write("gaps.toml",
                "[problem]\nkind = \"logistic\"\ndata = \"gaps.csv\"\nmissing = \"mean\"\n[clients]\n"
                "count = 1\n[algorithm]\nname = \"gd\"\nstep_size = 0.1\n[run]\nrounds = 9\n");
  const auto run = run_gradwire(folder_.path(), {"run", "gaps.toml"});
  EXPECT_NE(run.err.find("problem.missing = \"mean\" fills in missing values: 1 of column 1, 'age'"),
            std::string::npos)
      << run.err;
  folder_.write("new.csv", "age,y\n,0\n100,1\n");
  const auto with_means = evaluate({"results/gaps", "--data", "new.csv"});
  folder_.write("full.csv", "age,y\n4,0\n100,1\n");
  EXPECT_EQ(evaluate({"results/gaps", "--data", "full.csv"}).out, with_means.out) << with_means.err;
  std::filesystem::remove(folder_.path() / "results/gaps/preprocessing.json");
  const auto without = evaluate({"results/gaps", "--data", "new.csv"});
  EXPECT_NE(without.out, with_means.out);
  EXPECT_NE(without.err.find("problem.missing = \"mean\" takes the means of these data"), std::string::npos)
      << without.err;
}

TEST_F(Evaluate, MeasuresTheErrorOfRealLabels) {
  folder_.write("line.csv", "x,y\n1,2\n2,4\n3,6\n4,8\n");
  folder_.write("line.toml", R"([problem]
kind = "least_squares"
data = "line.csv"
regularizer = "l2"
lambda = 2
[clients]
count = 2
[algorithm]
name = "gd"
step_size = 0.1
[run]
rounds = 300
)");
  const auto run =
      run_gradwire(folder_.path(), {"run", "line.toml", "--set", "problem.test=line.csv", "--out", "line"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("test changes no metric of a run with problem.kind = \"least_squares\""),
            std::string::npos)
      << run.err;
  folder_.write("new.csv", "x,y\n1,0\n3,4\n");
  const auto found = evaluate({"line", "--data", "new.csv", "--json"});
  ASSERT_EQ(found.code, 0) << found.err;
  const auto number = [&](const std::string& key) {
    return std::stod(found.out.substr(found.out.find("\"" + key + "\":") + key.size() + 3));
  };
  // By hand: w minimises mean (w x - y)^2 / 2 + w^2, so w = 15 / 9.5.
  const double w = 15 / 9.5, squares = (w * w + (3 * w - 4) * (3 * w - 4)) / 2;
  EXPECT_NEAR(number("data_loss"), squares / 2, 1e-9) << found.out;
  EXPECT_NEAR(number("regularizer"), w * w, 1e-9);
  EXPECT_NEAR(number("loss"), squares / 2 + w * w, 1e-9);
  EXPECT_NEAR(number("rmse"), std::sqrt(squares), 1e-9);
  EXPECT_NEAR(number("r_squared"), 1 - squares / 4, 1e-9);
}

TEST_F(Evaluate, FindsTheSameModelAfterARunOverTheNetwork) {
  folder_.write("pets.csv", kPetsTable);
  folder_.write("pets.toml", kPets);
  for (const std::string kind : {"standard", "minmax", "unit_rows"}) {
    const std::string set = "problem.normalize=" + kind;
    for (const std::string way : {"memory", "tcp"}) {
      const auto run = run_gradwire(folder_.path(), {"run", "pets.toml", "--quiet", "--set", set,
                                                     "--transport", way, "--out", way, "--overwrite"});
      ASSERT_EQ(run.code, 0) << run.err;
    }
    for (const char* file : {"model.bin", "preprocessing.json"})
      EXPECT_EQ(read_file(folder_.path() / "memory" / file), read_file(folder_.path() / "tcp" / file))
          << kind << file;
  }
}

TEST_F(Evaluate, RefusesAModelThatDoesNotFit) {
  folder_.write("short.txt", "1\n2\n3\n");
  for (const char* model : {"short.txt", "absent.bin", "."}) {
    const auto r = evaluate({model, "digits.toml"});
    EXPECT_EQ(r.code, 2) << model << r.err;
    EXPECT_EQ(r.out, "");
    ASSERT_EQ(lines_of(r.err).size(), 1u) << r.err;
    EXPECT_NE(r.err.find(std::string(model) == "." ? ".: has no model.bin" : model), std::string::npos)
        << r.err;
    EXPECT_EQ(r.err.find("--set"), std::string::npos) << r.err;
  }
  EXPECT_EQ(evaluate({"results/digits/model.bin", "absent.toml"}).code, 2);
}

}  // namespace
}  // namespace gradwire
