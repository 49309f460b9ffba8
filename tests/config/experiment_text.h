// Texts and helpers for the tests of the experiment file.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "config/experiment_file.h"

namespace gradwire {

namespace fs = std::filesystem;

inline const fs::path kRoot = GRADWIRE_SOURCE_DIR;

using Overrides = std::vector<std::string>;

inline LoadedExperiment parse(const std::string& toml, const Overrides& overrides = {}) {
  return parse_experiment(toml, "dir/a.toml", overrides);
}

// Returns the error line that a user would see, or "" if the text is accepted.
inline std::string error_of(const std::string& toml, const Overrides& overrides = {}) {
  try {
    parse(toml, overrides);
  } catch (const ExperimentError& error) {
    return error.what();
  }
  return "";
}

// A valid experiment file of 14 lines, with one key per line.
inline const std::string kGood = R"(seed = 7
[problem]
kind = "logistic"
data = "libsvm:a9a"
regularizer = "l2"
lambda = 0.1
[clients]
count = 20
[algorithm]
name = "ef21"
compressor = "topk:k=1"
step_size = "theory"
[run]
rounds = 50
)";

inline std::string with(const std::string& line) { return kGood + line + "\n"; }
inline std::string replaced(const std::string& line, const std::string& by) {
  std::string text = kGood;
  const std::size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return text.replace(at, line.size(), by);
}

inline const std::string kQuadratic =
    "[problem]\nkind = \"quadratic\"\ndim = 10\n[algorithm]\nname = \"gd\"\n";

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "experiment_test_XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return path / name;
  }
};

}  // namespace gradwire
