#include "base/synonyms.h"

#include <gtest/gtest.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gradwire {
namespace {

std::string name_of(std::string_view word, const std::vector<std::string>& known) {
  const auto meant = meant_name(word, known);
  return meant ? meant->name : "";
}

TEST(Synonyms, AreWrittenInPlainSpelling) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const Synonym& row : synonyms()) {
    EXPECT_EQ(plain_spelling(row.word), row.word);
    EXPECT_NE(row.word, row.name);
    EXPECT_TRUE(seen.insert({row.word, row.name}).second) << row.word << " is given twice";
  }
}

TEST(Synonyms, FindNamesInAnyCase) {
  EXPECT_EQ(name_of("EF21-SGDM", {"ef21", "ef21_sgdm"}), "ef21_sgdm");
  EXPECT_EQ(name_of("step size", {"step_size"}), "step_size");
  EXPECT_EQ(name_of("ef22", {"ef21"}), "");
  EXPECT_EQ(name_of("", {"ef21"}), "");
}

TEST(Synonyms, MeanAKnownNameOnly) {
  EXPECT_EQ(name_of("lr", {"run.rounds", "algorithm.step_size"}), "algorithm.step_size");
  EXPECT_EQ(name_of("lr", {"step_size", "init"}), "step_size");
  EXPECT_EQ(name_of("lr", {"rounds"}), "");
  EXPECT_EQ(name_of("method", {"name", "algorithm.name"}), "algorithm.name");
  EXPECT_EQ(name_of("epochs", {"rounds", "grad_calls"}), "grad_calls");
  EXPECT_EQ(name_of("iterations", {"rounds", "grad_calls"}), "rounds");
}

TEST(Synonyms, ComeWithTheSettingsThatTheyNeed) {
  EXPECT_EQ(meant_name("Softmax", std::vector<std::string>{"mlp"})->with, "hidden = []");
  EXPECT_EQ(meant_name("logreg", std::vector<std::string>{"logistic"})->with, "");
}

}  // namespace
}  // namespace gradwire
