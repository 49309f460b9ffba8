// A folder with an experiment that has a [sweep], and helpers that read its plan and run the program there.
#pragma once

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "config/experiment_file.h"
#include "experiments/cli/sweep/sweep.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {

inline constexpr const char* kSweptQuadratic = R"(name = "steps"
[problem]
kind = "quadratic"
dim = 20
[clients]
count = 3
[algorithm]
name = "ef21"
compressor = "topk:k=2"
[run]
rounds = 20
evaluate_every = 5
)";

inline constexpr const char* kSweptLogistic = R"(name = "steps"
[problem]
kind = "logistic"
data = "csv:points.csv"
regularizer = "l2"
lambda = 0.1
[clients]
count = 3
partition = "iid"
[algorithm]
name = "gd"
[run]
rounds = 5
)";

class Sweep : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& sweep, const std::string& base = kSweptQuadratic) {
    folder_.write("sweep.toml", base + sweep);
    return path() / "sweep.toml";
  }
  SweepPlan plan(const std::string& sweep, const std::vector<std::string>& overrides = {}) {
    return read_sweep(write(sweep), overrides);
  }
  std::string refusal(const std::string& sweep) {
    try {
      plan(sweep);
    } catch (const ExperimentError& error) {
      const std::string what = error.what(), file = (path() / "sweep.toml").string();
      return what.rfind(file, 0) == 0 ? what.substr(file.size()) : what;
    }
    return "accepted";
  }
  std::vector<std::string> labels(const SweepPlan& plan) {
    std::vector<std::string> all;
    for (const RunOfSweep& run : plan.runs) all.push_back(label_of(run, plan.varied));
    return all;
  }
  ProgramResult gradwire(const std::vector<std::string>& arguments) {
    return run_gradwire(path(), arguments);
  }
  const std::filesystem::path& path() const { return folder_.path(); }
  std::string read(const std::filesystem::path& name) const { return read_file(path() / name); }

  TemporaryFolder folder_;
};

}  // namespace gradwire
