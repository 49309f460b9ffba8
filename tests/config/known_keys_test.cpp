#include "config/known_keys.h"

#include <gtest/gtest.h>

#include "algorithms/algorithms.h"
#include "base/synonyms.h"
#include "config/experiment_file.h"
#include "config/experiment_spec.h"
#include "config/shipped_experiments.h"

namespace gradwire {
namespace {

TEST(KeyOfWord, FindsTheOnlyKeyThatEndsSo) {
  EXPECT_EQ(key_of_word("rounds"), "run.rounds");
  EXPECT_EQ(key_of_word("run.rounds"), "run.rounds");
  EXPECT_EQ(key_of_word("Evaluate-Every"), "run.evaluate_every");
  EXPECT_EQ(key_of_word("local_steps"), "algorithm.local_steps");
  EXPECT_EQ(key_of_word("name"), "name") << "a key before the sections comes first";
  EXPECT_EQ(key_of_word("xyzzy"), std::nullopt);
  EXPECT_EQ(key_of_word(""), std::nullopt);
}

TEST(KeyOfWord, PrefersSynonymsToLastParts) {
  EXPECT_EQ(key_of_word("clients"), "clients.count") << "evaluation.clients also ends so";
  EXPECT_EQ(key_of_word("lr"), "algorithm.step_size");
  EXPECT_EQ(key_of_word("method"), "algorithm.name") << "not the key `name` before the sections";
}

TEST(KeyOfWord, NeverHidesAParameterByASynonym) {
  for (const AlgorithmInfo& algorithm : all_algorithms())
    for (const ParameterHelp& parameter : algorithm.parameters)
      if (parameter.name != "lambda") {
        EXPECT_EQ(key_of_word(parameter.name), "algorithm." + parameter.name);
      }
  EXPECT_EQ(key_of_word("lambda"), "problem.lambda") << "the parameter of frecon needs its section";
}

TEST(KeyOfWord, FindsEveryKeyOfTheTableOfSynonyms) {
  for (const Synonym& row : synonyms())
    if (row.name.find('.') != row.name.npos) {
      EXPECT_EQ(key_of_word(row.name), row.name);
    }
}

TEST(ShippedExperiments, AreReadByTheirNames) {
  EXPECT_EQ(load_experiment("quadratics").experiment.name, "quadratics");
  EXPECT_EQ(find_shipped("xyzzy"), nullptr);
  for (const ShippedExperiment& shipped : shipped_experiments())
    EXPECT_NO_THROW(load_experiment(std::string(shipped.name))) << shipped.name;
}

}  // namespace
}  // namespace gradwire
