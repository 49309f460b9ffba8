#include "report/preprocessing_file.h"

#include <gtest/gtest.h>
#include <memory>

#include "config/experiment_file.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

ExperimentSpec experiment(const std::string& keys) {
  return parse_experiment("[problem]\nkind = \"mlp\"\ndata = \"t.csv\"\n" + keys +
                              "[clients]\ncount = 2\n[algorithm]\nname = \"gd\"\n",
                          "t.toml")
      .experiment;
}

TEST(PreprocessingFile, GivesTheSameBitsAndBytes) {
  TableEncoding table;
  table.features = {{"caf\xc3\xa9", {"a\"\n", "b\xff\xfe", "\xc3\xa9"}, 0}, {"", {}, 1.0 / 3}};
  table.label = {"y", {"no", "yes"}, 0};
  table.label_place = "column 3, 'y', of t.csv";
  const Normalization map{Normalize::kMinMax, {0.1, -1e-300, 0}, {1e300, 3, 1.0 / 7}, 1};
  const Preprocessing saved{std::make_shared<const TableEncoding>(table),
                            std::make_shared<const Normalization>(map)};
  const TemporaryFolder folder;
  folder.write(kPreprocessingFile, preprocessing_json(experiment(""), saved));
  const auto read = preprocessing_in(folder.path());
  ASSERT_TRUE(read);
  EXPECT_EQ(*read->encoding, table);
  EXPECT_EQ(*read->normalization, map);
}

TEST(PreprocessingFile, IsThereOnlyIfAModelNeedsIt) {
  TableEncoding numbers;
  numbers.features = {{"a", {}, 2}};
  const Preprocessing table{std::make_shared<const TableEncoding>(numbers), nullptr};
  EXPECT_EQ(preprocessing_json(experiment(""), {}), "");
  EXPECT_EQ(preprocessing_json(experiment(""), table), "");
  EXPECT_NE(preprocessing_json(experiment("missing = \"mean\"\n"), table), "");
  const Preprocessing rows{
      nullptr, std::make_shared<const Normalization>(Normalization{Normalize::kUnitRows, {}, {}, 0})};
  EXPECT_NE(preprocessing_json(experiment(""), rows), "");
  const TemporaryFolder folder;
  EXPECT_FALSE(preprocessing_in(folder.path()));
}

TEST(PreprocessingFile, IsRefusedIfItIsDamaged) {
  const TemporaryFolder folder;
  for (
      const char* text :
      {"", "[", "[1]", "{\"table\": 1}", "{\"normalize\": {}}",
       R"({"normalize": {"kind": "other", "shift": [], "scale": [], "sparse": 0}})",
       R"({"normalize": {"kind": "minmax", "shift": [1], "scale": [], "sparse": 0}})",
       R"({"normalize": {"kind": "minmax", "shift": [1], "scale": [0], "sparse": 0}})",
       R"({"normalize": {"kind": "minmax", "shift": [null], "scale": [1], "sparse": 0}})",
       R"({"table": {"label": {"name": "", "texts": ["a", "a"], "mean": 0}, "label_place": "", "features": []}})"}) {
    folder.write(kPreprocessingFile, text);
    const std::string error = data_error([&] { preprocessing_in(folder.path()); });
    EXPECT_TRUE(error.starts_with((folder.path() / kPreprocessingFile).string() + ": is damaged"))
        << text << error;
  }
}

}  // namespace
}  // namespace gradwire
