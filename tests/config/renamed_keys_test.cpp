// Old names of keys and words: in files, in --set, on the wire and in checkpoints.
#include "config/renamed_keys.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "config/settings.h"
#include "proto/wire/wire.pb.h"
#include "tests/config/experiment_text.h"

namespace gradwire {
namespace {

using Lines = std::vector<std::string>;

const std::string kUntil = "; the old name works until version 0.3";

// A setting under its old and its current name, and the experiment that it is added to.
struct Alias {
  std::string section, old_line, line;
  std::string old_path, path;  // the names in the warning
};

const std::vector<Alias>& aliases() {
  static const std::vector<Alias> all = {
      {"clients", "copies = 4", "replication = 4", "clients.copies", "clients.replication"},
      {"clients", "seconds = \"sqrt\"", "latency = \"sqrt\"", "clients.seconds", "clients.latency"},
      {"algorithm", "paths = 0.5", "backprop_fraction = 0.5", "algorithm.paths",
       "algorithm.backprop_fraction"},
      {"server", "mirrors = false", "client_state_replicas = false", "server.mirrors",
       "server.client_state_replicas"},
      {"problem", "activations = \"bfloat16\"", "activation_dtype = \"bfloat16\"", "problem.activations",
       "problem.activation_dtype"},
      {"faults", "wiped = 0.25", "state_loss = 0.25", "faults.wiped", "faults.state_loss"},
      {"server", "norm_action = \"clip\"", "norm_action = \"halve\"", "server.norm_action = \"clip\"",
       "\"halve\""},
      {"evaluation", "grad_norm = \"ends\"", "grad_norm = \"first_and_last\"",
       "evaluation.grad_norm = \"ends\"", "\"first_and_last\""}};
  return all;
}

// Returns an experiment whose section `section` has the line.
std::string text_with(const std::string& section, const std::string& line) {
  std::string text =
      "[problem]\nkind = \"mlp\"\ndata = \"libsvm:a\"\n[clients]\ncount = 8\n[algorithm]\nname = \"gd\"\n"
      "[server]\nquorum = 1\n[evaluation]\naccuracy = true\n[faults]\nshuffle = false\n";
  const std::string header = "[" + section + "]\n";
  const std::size_t at = text.find(header);
  EXPECT_NE(at, std::string::npos) << section;
  return text.insert(at + header.size(), line + "\n");
}
std::string set_of(const Alias& alias, const std::string& line) {
  return alias.section + "." + line.substr(0, line.find(' ')) + "=" + line.substr(line.find("= ") + 2);
}
std::string warning_of(const Alias& alias) { return alias.old_path + " is now " + alias.path + kUntil; }

TEST(RenamedKeys, TheOldNameInAFileMeansTheSameAndWarnsOnce) {
  for (const Alias& alias : aliases()) {
    const LoadedExperiment old = parse(text_with(alias.section, alias.old_line)),
                           now = parse(text_with(alias.section, alias.line));
    EXPECT_EQ(settings_of(old.experiment), settings_of(now.experiment)) << alias.old_path;
    EXPECT_NE(settings_of(old.experiment), settings_of(parse(text_with("server", "")).experiment))
        << alias.old_path;
    EXPECT_EQ(now.warnings, Lines{});
    ASSERT_EQ(old.warnings.size(), 1u) << alias.old_path;
    const std::string text = text_with(alias.section, alias.old_line);
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<long>(text.find(alias.old_line)), '\n');
    EXPECT_EQ(old.warnings[0], "dir/a.toml:" + std::to_string(line) + ": " + warning_of(alias));
    EXPECT_EQ(old.lines, now.lines) << "the places of errors";
  }
}

TEST(RenamedKeys, TheOldNameInASetMeansTheSameAndWarnsOnce) {
  for (const Alias& alias : aliases()) {
    const LoadedExperiment old = parse(text_with("server", ""), {set_of(alias, alias.old_line)}),
                           now = parse(text_with(alias.section, alias.line));
    EXPECT_EQ(settings_of(old.experiment), settings_of(now.experiment)) << alias.old_path;
    EXPECT_EQ(old.warnings, Lines{"--set " + warning_of(alias)});
    const std::string set = set_of(alias, alias.old_line);
    EXPECT_EQ(parse(text_with("server", ""), {set, set}).warnings.size(), 1u);
  }
}

TEST(RenamedKeys, ASetReplacesAFileAndALaterSetAnEarlierOneUnderEitherName) {
  const auto replication = [](const std::string& line, const Overrides& sets) {
    return parse(text_with("clients", line), sets).experiment.clients.replication;
  };
  EXPECT_EQ(replication("copies = 4", {"clients.replication=2"}), 2u);
  EXPECT_EQ(replication("replication = 4", {"clients.copies=2"}), 2u);
  EXPECT_EQ(replication("", {"clients.copies=2", "clients.replication=4"}), 4u);
  EXPECT_EQ(replication("", {"clients.replication=4", "clients.copies=2"}), 2u);
  EXPECT_EQ(key_of_override("clients.copies=2"), "clients.replication");
}

TEST(RenamedKeys, AFileWithBothNamesIsRefused) {
  for (const Alias& alias : aliases()) {
    if (alias.path[0] == '"') continue;  // the key of a word has one name
    const std::string error = " is the old name of " + alias.path + "; remove one of the two";
    for (const std::string& lines :
         {alias.old_line + "\n" + alias.line, alias.line + "\n" + alias.old_line}) {
      const std::string text = text_with(alias.section, lines);
      const auto last =
          2 + std::count(text.begin(), text.begin() + static_cast<long>(text.find(lines)), '\n');
      EXPECT_EQ(error_of(text), "dir/a.toml:" + std::to_string(last) + ": " + alias.old_path + error);
    }
  }
}

TEST(RenamedKeys, ErrorsNameTheKeyAsItWasTyped) {
  const std::string must = "replication must be an integer, 1 to 1000, not 0";
  EXPECT_EQ(error_of(text_with("clients", "copies = 0")), "dir/a.toml:5: " + must);
  EXPECT_EQ(error_of(text_with("server", ""), {"clients.copies=0"}), "--set clients.copies: " + must);
  EXPECT_EQ(error_of(text_with("server", ""), {"clients.copies=0", "clients.replication=0"}),
            "--set clients.replication: " + must);
}

TEST(RenamedKeys, ATypoOfAnOldNameSuggestsTheNewOne) {
  EXPECT_EQ(error_of(text_with("clients", "copis = 2")),
            "dir/a.toml:5: unknown key 'copis' in [clients]; did you mean 'replication'?");
  EXPECT_EQ(error_of(text_with("clients", "replicaton = 2")),
            "dir/a.toml:5: unknown key 'replicaton' in [clients]; did you mean 'replication'?");
  EXPECT_EQ(error_of(text_with("server", "copies = 2")).substr(14),
            "unknown key 'copies' in [server]; did you mean 'clients.replication'?");
  EXPECT_EQ(error_of(text_with("algorithm", "copies = 2")).substr(13),
            " unknown key 'copies' in [algorithm]; did you mean 'clients.replication'?");
  EXPECT_EQ(error_of(text_with("algorithm", "path = 0.5")).substr(13),
            " gd has no parameter 'path'; did you mean 'backprop_fraction'?");
  EXPECT_EQ(error_of(text_with("server", "norm_action = \"clp\"")).substr(14),
            "unknown norm_action 'clp'; did you mean 'halve'?");
  EXPECT_EQ(error_of(text_with("evaluation", "grad_norm = \"end\"")).substr(15),
            "unknown grad_norm 'end'; did you mean 'first_and_last'?");
}

// Peers and state folders of the previous version know only the old names.
TEST(RenamedKeys, TheWireKeepsTheOldNames) {
  for (const Alias& alias : aliases()) {
    const ExperimentSpec e = parse(text_with(alias.section, alias.line)).experiment;
    wire::Experiment message;
    ASSERT_TRUE(message.ParseFromString(pack_experiment(e)));
    std::map<std::string, std::string> sent;
    for (const wire::Setting& setting : message.settings()) sent[setting.path()] = setting.text();
    const std::string set = set_of(alias, alias.old_line);
    const std::string text = set.substr(set.find('=') + 1);
    const std::string old_path = set.substr(0, set.find('='));
    ASSERT_EQ(sent.count(old_path), 1u) << old_path;
    EXPECT_EQ(sent[old_path], text[0] == '"' ? text.substr(1, text.size() - 2) : text);
    if (alias.path[0] != '"') {
      EXPECT_EQ(sent.count(alias.path), 0u);
    }
    const auto back = unpack_experiment(pack_experiment(e));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(settings_of(*back), settings_of(e));
    EXPECT_EQ(first_difference(*back, e), "") << "a restart from a state folder";
    EXPECT_EQ(settings_of(experiment_of(settings_of(e))), settings_of(e)) << "the current names";
  }
}

TEST(RenamedKeys, ASettingWithBothNamesIsRefused) {
  Settings settings = settings_of(parse(text_with("clients", "replication = 4")).experiment);
  settings.emplace_back("clients.copies", "4");
  try {
    experiment_of(settings);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()), "'clients.replication' is given twice");
  }
}

// Checkpoints are compared with this text, so it must not change.
TEST(RenamedKeys, TheTextOfCheckpointsKeepsTheOldNames) {
  const ExperimentSpec e = parse(R"([problem]
kind = "logistic"
data = "libsvm:a"
[clients]
count = 4
replication = 2
latency = "sqrt"
[algorithm]
name = "gd"
backprop_fraction = 0.5
[evaluation]
grad_norm = "first_and_last"
[server]
norm_limit = 3
norm_action = "halve"
[faults]
state_loss = 0.5
)")
                               .experiment;
  const std::string old = to_toml(e, Names::kOld), now = to_toml(e);
  for (const char* line :
       {"\ncopies = 2\n", "\nseconds = \"sqrt\"\n", "\npaths = 0.5\n", "\ngrad_norm = \"ends\"\n",
        "\nmirrors = \"auto\"\n", "\nnorm_action = \"clip\"\n", "\nwiped = 0.5\n"})
    EXPECT_NE(old.find(line), std::string::npos) << line << old;
  for (const Alias& alias : aliases()) {
    const std::string key = "\n" + alias.old_line.substr(0, alias.old_line.find(' ')) + " = ";
    if (alias.path[0] != '"') {
      EXPECT_EQ(now.find(key), std::string::npos) << now;
    }
  }
  EXPECT_EQ(std::count(old.begin(), old.end(), '\n'), std::count(now.begin(), now.end(), '\n'));
  EXPECT_EQ(settings_of(parse(old).experiment), settings_of(e));
  EXPECT_EQ(settings_of(parse(now).experiment), settings_of(e));
}

TEST(RenamedKeys, NoOldNameIsTheNameOfAnotherKey) {
  std::set<std::string> names;
  for (const KeyHelp& key : experiment_keys()) names.insert(key.key);
  for (const AlgorithmInfo& algorithm : all_algorithms())
    for (const ParameterHelp& parameter : algorithm.parameters) names.insert("algorithm." + parameter.name);
  EXPECT_EQ(renamed_keys().size(), 6u);
  for (const Renamed& key : renamed_keys()) {
    EXPECT_EQ(names.count(key.old_name), 0u) << key.old_name;
    EXPECT_EQ(names.count(key.name), 1u) << key.name;
    EXPECT_EQ(current_path(key.old_name), key.name);
    EXPECT_EQ(old_path(key.name), key.old_name);
  }
  EXPECT_EQ(current_path("run.rounds"), "run.rounds");
}

}  // namespace
}  // namespace gradwire
