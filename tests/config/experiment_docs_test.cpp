// The tables of docs/reference/experiment_file.md, compared with the keys that the programs know.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "config/experiment_spec.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

const std::filesystem::path kPage =
    std::filesystem::path(GRADWIRE_SOURCE_DIR) / "docs" / "reference" / "experiment_file.md";

std::string without_pipes(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

// Returns the row that the page must have for one key.
std::string markdown_row(const KeyHelp& help) {
  const std::string key = help.key.substr(help.key.find('.') + 1);
  return without_pipes("`" + key + "`").insert(0, "| ") + " | " + without_pipes(help.type) + " | " +
         without_pipes(help.fallback) + " | " + without_pipes(help.meaning) + " |\n";
}

// Problem types that share keys, and the heading of the table of these keys.
struct Family {
  std::string heading;
  std::vector<std::string> kinds;
};
const std::vector<Family> kFamilies = {
    {"### Samples: `least_squares`, `logistic`, `mlp`, `cnn`", {"least_squares", "logistic", "mlp", "cnn"}},
    {"### Networks: `mlp`, `char_mlp`, `gpt`, `cnn`", {"mlp", "char_mlp", "gpt", "cnn"}},
    {"### Texts: `char_mlp`, `gpt`", {"char_mlp", "gpt"}},
};

std::vector<std::string> rows_of(const std::string& kind) {
  std::vector<std::string> rows;
  for (const KeyHelp& help : problem_keys(kind)) rows.push_back(markdown_row(help));
  return rows;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Returns one table for each family, with the rows that are equal for all of its types, then one for each
// type.
std::string problem_tables() {
  std::string tables;
  std::vector<std::pair<std::string, std::string>> shared;  // problem type, row
  const auto is_shared = [&](const std::string& kind, const std::string& row) {
    return std::find(shared.begin(), shared.end(), std::pair(kind, row)) != shared.end();
  };
  for (const Family& family : kFamilies) {
    tables += family.heading + "\n";
    for (const std::string& row : rows_of(family.kinds[0])) {
      if (is_shared(family.kinds[0], row) ||
          !std::all_of(family.kinds.begin(), family.kinds.end(),
                       [&](const std::string& kind) { return contains(rows_of(kind), row); }))
        continue;
      tables += row;
      for (const std::string& kind : family.kinds) shared.emplace_back(kind, row);
    }
  }
  for (const ProblemInfo& type : problem_types()) {
    tables += "### `" + std::string(type.name) + "`\n";
    for (const std::string& row : rows_of(std::string(type.name)))
      if (!is_shared(std::string(type.name), row)) tables += row;
  }
  return tables;
}

TEST(ExperimentDocs, ListEveryKeyAsTheProgramKnowsIt) {
  std::string expected;
  for (const KeyHelp& help : experiment_keys()) {
    if (help.key == "problem.kind") expected += markdown_row(help) + problem_tables();
    if (!help.key.starts_with("problem.")) expected += markdown_row(help);
  }
  std::istringstream page(read_file(kPage));
  std::string actual, line;
  while (std::getline(page, line))
    if (line.starts_with("| `") || line.starts_with("### ")) actual += line + "\n";
  EXPECT_EQ(actual, expected) << "the tables of docs/reference/experiment_file.md should be:\n" << expected;
}

}  // namespace
}  // namespace gradwire
