// The encoded experiment, as a peer sends it and a state folder holds it.
#include "config/settings.h"

#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "proto/wire/wire.pb.h"
#include "tests/config/experiment_text.h"

namespace gradwire {
namespace {

ExperimentSpec of_kind(std::string_view kind) {
  ExperimentSpec e = parse(kQuadratic).experiment;
  e.problem = problem_of(std::string(kind));
  if (SampleSource* sources = sources_of(e.problem))
    sources->data = text_reading(e.problem) ? "text:letters" : "libsvm:samples";
  if (auto* quadratic = std::get_if<Quadratic>(&e.problem)) quadratic->shape.dim = 3;
  if (auto* custom = std::get_if<Custom>(&e.problem)) custom->d = 3;
  return e;
}

// Returns the error of these settings, or "" if they are accepted.
std::string trouble(const Settings& settings) {
  try {
    experiment_of(settings);
  } catch (const ConfigError& error) {
    return error.key() + ": " + error.what();
  }
  return "";
}

// Returns a value that the field accepts and that differs from its current one, or nullopt.
std::string other_text(const Field& field) {
  for (const char* text : {"true",    "false",      "0.5",
                           "0.25",    "1",          "2",
                           "6",       "12",         "1 2",
                           "normal",  "text:other", "libsvm:other",
                           "off",     "identity",   "power",
                           "samples", "l2",         "fp32",
                           "iid",     "gd",         "sigmoid_squared",
                           "relu",    "tanh"}) {
    const std::string before = field.text();
    try {
      field.from_text("k", text);
    } catch (const ConfigError&) {
      continue;
    }
    const bool changed = field.text() != before;
    field.from_text("k", before);
    if (changed) return text;
  }
  return "";
}

TEST(Settings, HaveEveryKeyOnceAndComeBackAsTheSameExperiment) {
  for (const ProblemInfo& kind : problem_types()) {
    SCOPED_TRACE(kind.name);
    const ExperimentSpec e = of_kind(kind.name);
    const Settings settings = settings_of(e);
    std::set<std::string> keys;
    for (const auto& [key, text] : settings) EXPECT_TRUE(keys.insert(key).second) << key;
    EXPECT_TRUE(keys.count("problem.kind") && keys.count("run.rounds") && keys.count("faults.shuffle"));
    EXPECT_EQ(settings_of(experiment_of(settings)), settings);
    const auto back = unpack_experiment(pack_experiment(e));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(settings_of(*back), settings);
  }
}

// Changes each key alone. Values that do not fit the others are skipped. All others must come back unchanged.
TEST(Settings, CarryEveryValueOfEveryKey) {
  std::size_t carried = 0;
  for (const ProblemInfo& kind : problem_types()) {
    ExperimentSpec e = of_kind(kind.name);
    for (const auto& [key, text] : settings_of(e)) {
      ExperimentSpec changed = e;
      std::string to;
      for (const KeySection& section : sections_of(changed))
        for (const Field& field : section.fields)
          if (section.path(field.key) == key) to = other_text(field);
      Settings settings = settings_of(e);
      for (auto& [k, t] : settings)
        if (k == key) t = to;
      if (to.empty() || !trouble(settings).empty()) continue;
      EXPECT_EQ(settings_of(experiment_of(settings)), settings) << kind.name << " " << key;
      ++carried;
    }
  }
  EXPECT_GT(carried, 7u * 20);
}

TEST(Settings, AreSentOnlyIfSetWhenTheyAreNew) {
  ExperimentSpec e = of_kind("logistic");
  const auto has = [&](const std::string& key) {
    const Settings settings = settings_of(e);
    return std::any_of(settings.begin(), settings.end(), [&](const auto& s) { return s.first == key; });
  };
  EXPECT_FALSE(has("run.patience") || has("run.stop_at_loss") || has("run.client_metrics"));
  e.run.patience = 3;
  e.run.stop_at_loss.value = -0.1;
  EXPECT_TRUE(has("run.patience") && has("run.stop_at_loss") && !has("run.client_metrics"));
  const auto back = unpack_experiment(pack_experiment(e));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->run.patience, 3u);
  EXPECT_EQ(back->run.stop_at_loss.value, -0.1);
}

TEST(Settings, AreRejectedByNameIfUnknownRepeatedOrOutOfRange) {
  const Settings good = settings_of(of_kind("logistic"));
  EXPECT_EQ(trouble(good), "");
  const auto with_setting = [&](const std::string& key, const std::string& text) {
    Settings settings = good;
    for (auto& [k, t] : settings)
      if (k == key) {
        t = text;
        return trouble(settings);
      }
    settings.emplace_back(key, text);
    return trouble(settings);
  };
  EXPECT_EQ(with_setting("problem.kind", "logstic").substr(0, 36), "problem.kind: unknown kind 'logstic'");
  EXPECT_EQ(with_setting("problem.heads", "2"), "problem.heads: unknown key 'problem.heads'");
  EXPECT_EQ(with_setting("rounds", "2"), "rounds: unknown key 'rounds'");
  EXPECT_EQ(with_setting("clients.count", "0"),
            "clients.count: count must be an integer, 1 to 1000000, not 0");
  EXPECT_EQ(with_setting("problem.data", "a\nb").substr(0, 50),
            "problem.data: must not contain control characters:");
  EXPECT_EQ(with_setting("a\nb", "1"), "a setting: must not contain control characters: \"a\\nb\"");
  EXPECT_EQ(with_setting("algorithm.gama", "1").substr(0, 16), "algorithm.gama: ");
  Settings twice = good;
  twice.push_back(good.back());
  EXPECT_EQ(trouble(twice), "faults.shuffle: 'faults.shuffle' is given twice");
  EXPECT_EQ(trouble({{"seed", "1"}}), "problem.kind: required");
}

TEST(Settings, HaveTheirDefaultsIfLeftOut) {
  const ExperimentSpec e = experiment_of({{"name", "a"},
                                          {"problem.kind", "quadratic"},
                                          {"problem.dim", "4"},
                                          {"algorithm.name", "gd"},
                                          {"run.x0", "zeros"}});
  EXPECT_EQ(e.run.rounds, RunSection().rounds);
  EXPECT_EQ(std::get<Quadratic>(e.problem).shape.dim, 4u);
}

TEST(Settings, DamagedBytesAreRefusedOrMakeAnExperimentThatPassesItsChecks) {
  const std::string good = pack_experiment(of_kind("gpt"));
  EXPECT_TRUE(unpack_experiment(good));
  EXPECT_FALSE(unpack_experiment(""));
  EXPECT_FALSE(unpack_experiment("\xff\xff\xff\xff"));
  Random random(5, "damaged experiments");
  std::size_t refused = 0;
  for (int k = 0; k < 3000; ++k) {
    std::string bytes = good;
    if (k % 3 == 0) bytes.resize(random.below(bytes.size()));
    for (int n = 0; n < k % 4 + 1 && !bytes.empty(); ++n)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    const auto e = unpack_experiment(bytes);
    refused += !e;
    if (e) {
      EXPECT_NO_THROW(check_experiment(*e));
    } else {
      EXPECT_EQ(e.error().message.find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(refused, 1000u);
}

TEST(Settings, AreRejectedUnreadIfTheyAreTooMany) {
  wire::Experiment message;
  for (int k = 0; k < 1001; ++k) {
    wire::Setting& setting = *message.add_settings();
    setting.set_path("algorithm.p" + std::to_string(k));
    setting.set_text("1");
  }
  EXPECT_EQ(unpack_experiment(message.SerializeAsString()).error().message, "the experiment is damaged");
}

TEST(SettingsOfARestart, MayDifferOnlyInFieldsThatMayChange) {
  const ExperimentSpec before = of_kind("logistic");
  const auto difference = [&](auto change) {
    ExperimentSpec now = before;
    change(now);
    return first_difference(now, before);
  };
  EXPECT_EQ(difference([](ExperimentSpec&) {}), "");
  EXPECT_EQ(difference([](ExperimentSpec& e) { e.run.rounds = 7, e.server.deadline_ms = 8; }), "");
  EXPECT_EQ(difference([](ExperimentSpec& e) { e.seed = 9; }), "seed is 9 now and was 1");
  EXPECT_EQ(difference([](ExperimentSpec& e) { e.problem = Quadratic{}; }),
            "problem.kind is \"quadratic\" now and was \"logistic\"");
  EXPECT_EQ(difference([](ExperimentSpec& e) { std::get<Logistic>(e.problem).lambda = 0.5; }),
            "problem.lambda is 0.5 now and was 0.0");
  EXPECT_EQ(difference([](ExperimentSpec& e) {
              e.algorithm.parameters = {{"init", "zero"}};
            }),
            "algorithm.init is \"zero\" now and was not set");

  ExperimentSpec now = before, then = before;
  now.run.rounds = 7;
  now.server.quorum = 0.5;
  copy_what_may_change(now, then);
  EXPECT_EQ(settings_of(then), settings_of(now));
}

}  // namespace
}  // namespace gradwire
