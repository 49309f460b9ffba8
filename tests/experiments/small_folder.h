// Small experiments, and a folder with one, its data, and the program run in it.
#pragma once

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {

inline constexpr const char* kSmallExperiment = R"(name = "small"
[problem]
kind = "logistic"
data = "csv:points.csv"
regularizer = "l2"
lambda = 0.1
[clients]
count = 3
[algorithm]
name = "ef21"
compressor = "topk:k=1"
[run]
rounds = 12
evaluate_every = 5
)";

inline constexpr const char* kDigitsExperiment = R"(name = "digits"
[problem]
kind = "mlp"
data = "digits"
test_share = 0.2
hidden = [8]
[clients]
count = 4
[algorithm]
name = "gd"
step_size = 0.1
[run]
rounds = 7
)";

class SmallFolder : public ::testing::Test {
 protected:
  SmallFolder() {
    std::string points;
    for (int k = 0; k < 30; ++k)
      points += std::to_string((k * 7) % 11) + "," + std::to_string((k * 5) % 13) + "," +
                std::to_string(k % 3 % 2) + "\n";
    folder_.write("points.csv", points);
    folder_.write("small.toml", kSmallExperiment);
  }

  ProgramResult gradwire(const std::vector<std::string>& arguments) {
    return run_gradwire(path(), arguments);
  }
  const std::filesystem::path& path() const { return folder_.path(); }
  std::string read(const std::string& name) const { return read_file(path() / name); }
  bool exists(const std::string& name) const { return std::filesystem::exists(path() / name); }

  TemporaryFolder folder_;
};

}  // namespace gradwire
