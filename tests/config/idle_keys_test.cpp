// Keys of a file that have no effect.
#include "config/idle_keys.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "algorithms/algorithms.h"
#include "tests/config/experiment_text.h"

namespace gradwire {
namespace {

using Lines = std::vector<std::string>;

Lines idle(const std::string& toml, const Overrides& overrides = {}) {
  return idle_keys(parse(toml, overrides));
}

TEST(IdleKeys, NameTheKeyAndTheValueThatLeavesItWithoutEffect) {
  EXPECT_EQ(idle(kGood), Lines{});
  EXPECT_EQ(idle(kGood, {"clients.dirichlet_alpha=0.5"}),
            Lines{"dirichlet_alpha has no effect with partition = \"contiguous\""});
  EXPECT_EQ(idle(kGood, {"clients.dirichlet_alpha=0.3", "clients.partition=iid"}),
            Lines{"dirichlet_alpha has no effect with partition = \"iid\""})
      << "also if the value is the default";
  EXPECT_EQ(idle(kGood, {"clients.dirichlet_alpha=0.5", "clients.partition=dirichlet"}), Lines{});
  EXPECT_EQ(idle(kGood, {"clients.placement=groups"}), Lines{"placement has no effect with replication = 1"});
  EXPECT_EQ(idle(kGood, {"clients.placement=groups", "clients.replication=2"}), Lines{});
  EXPECT_EQ(idle(kGood, {"problem.regularizer=none"}),
            Lines{"lambda has no effect with regularizer = \"none\""});
  EXPECT_EQ(idle(kGood, {"problem.label=y"}), Lines{"label has no effect with data = \"libsvm:a9a\""});
  EXPECT_EQ(idle(kGood, {"problem.label=y", "problem.data=pets.csv"}), Lines{});
  EXPECT_EQ(idle(kGood, {"problem.samples=50"}), Lines{"samples has no effect with data = \"libsvm:a9a\""});
  Overrides mlp = {"problem.kind=mlp", "problem.regularizer=none", "problem.lambda=0",
                   "problem.activation=relu"};
  EXPECT_EQ(idle(kGood, mlp), Lines{"activation has no effect with hidden = []"});
  mlp.push_back("problem.hidden=[4]");
  EXPECT_EQ(idle(kGood, mlp), Lines{});
  EXPECT_EQ(idle(kQuadratic, {"problem.noise=0.1"}),
            Lines{"noise has no effect with algorithm.batch = \"full\""});
  EXPECT_EQ(idle(kQuadratic, {"clients.partition=iid"}),
            Lines{"partition has no effect with problem.kind = \"quadratic\""});
  EXPECT_EQ(idle(kQuadratic, {"evaluation.clients=0.5", "run.evaluate_every=0"}),
            Lines{"clients has no effect with run.evaluate_every = 0"});
  EXPECT_EQ(idle(kQuadratic, {"algorithm.name=gd", "server.client_state_replicas=true"}),
            Lines{"client_state_replicas has no effect with algorithm.name = \"gd\""});
  EXPECT_EQ(idle(kQuadratic, {"algorithm.name=gd", "server.client_state_replicas=auto"}), Lines{});
  EXPECT_EQ(idle(kQuadratic, {"algorithm.name=ef21", "server.client_state_replicas=true"}), Lines{});
}

TEST(IdleKeys, AreFoundInTheFile) {
  EXPECT_EQ(idle(kQuadratic + "[server]\nnorm_action = \"warn\"\n"),
            Lines{"norm_action has no effect with norm_limit = 0.0"});
}

TEST(IdleKeys, AreFoundAmongTheParametersOfAlgorithms) {
  const auto of_algorithm = [](const std::string& name, Overrides overrides) {
    overrides.insert(overrides.begin(), {"algorithm.name=" + name});
    return idle(kQuadratic, overrides);
  };
  EXPECT_EQ(of_algorithm("dcgd", {"algorithm.horizon=9", "algorithm.schedule=inverse"}),
            Lines{"horizon has no effect with schedule = \"inverse\""});
  EXPECT_EQ(of_algorithm("dcgd", {"algorithm.horizon=9", "algorithm.schedule=cosine"}), Lines{});
  EXPECT_EQ(of_algorithm("asgd", {"algorithm.max_delay=9", "algorithm.step_size=0.1"}),
            Lines{"max_delay has no effect with step_size = 0.1"});
  EXPECT_EQ(of_algorithm("asgd", {"algorithm.max_delay=9", "algorithm.step_size=theory*2"}), Lines{});
  EXPECT_EQ(of_algorithm("fednl", {"algorithm.c=0.1"}), Lines{"c has no effect with line_search = \"none\""});
  EXPECT_EQ(of_algorithm("fednl", {"algorithm.c=0.1", "algorithm.line_search=armijo"}), Lines{});
}

// The Lyapunov functions of these algorithms read the constant, so the monitor gives it an effect.
TEST(IdleKeys, NameThePlConstantUnlessTheStepIsTheorysOrTheRunIsMonitored) {
  for (const char* algorithm : {"ef21", "ef21_plus", "ef21_w", "marina", "vr_marina", "pp_marina", "page"}) {
    const std::string name = std::string("algorithm.name=") + algorithm;
    EXPECT_EQ(idle(kQuadratic, {name, "algorithm.mu=0.1", "algorithm.step_size=0.5"}),
              Lines{"mu has no effect with step_size = 0.5"})
        << algorithm;
    EXPECT_EQ(idle(kQuadratic, {name, "algorithm.mu=none", "algorithm.step_size=0.5"}), Lines{}) << algorithm;
    EXPECT_EQ(idle(kQuadratic, {name, "algorithm.mu=0.1", "algorithm.step_size=theory*2"}), Lines{})
        << algorithm;
    const Overrides monitored = {name, "algorithm.mu=0.1", "algorithm.step_size=0.5", "run.monitor=true"};
    EXPECT_EQ(idle(kQuadratic, monitored), Lines{}) << algorithm;
    const std::string written = to_toml(parse(kQuadratic, monitored).experiment);
    EXPECT_NE(written.find("mu = 0.1"), std::string::npos) << written;
  }
  // These algorithms use mu in their listings, so it has an effect with any step size.
  for (const char* algorithm : {"nesterov", "adiana", "fedprox"})
    EXPECT_EQ(idle(kQuadratic, {std::string("algorithm.name=") + algorithm, "algorithm.mu=0.1",
                                "algorithm.step_size=0.5"}),
              Lines{})
        << algorithm;
}

TEST(IdleKeys, AreNamedIfOnlyAnotherProgramReadsThem) {
  EXPECT_EQ(keys_of(RunIn::kMemory, parse(kGood)), Lines{});
  EXPECT_EQ(keys_of(RunIn::kNetwork, parse(kGood)), Lines{});
  Overrides simulated = {"clients.latency=0.5"},
            served = {"server.durability=power", "server.tls_min=TLS1.2", "server.zstd=off",
                      "server.overlap=true",     "server.zerocopy=true",  "server.staging_budget=1MB"};
  Lines faults;
  for (const char* fault : {"lost_replies", "lost_requests", "duplicates", "crashes", "state_loss"}) {
    simulated.push_back("faults." + std::string(fault) + "=0.1");
    faults.push_back("faults." + std::string(fault));
  }
  Lines expected = faults;
  expected.insert(expected.begin(), "clients.latency");
  EXPECT_EQ(keys_of(RunIn::kMemory, parse(kGood, simulated)), expected);
  EXPECT_EQ(keys_of(RunIn::kMemory, parse(kGood, {"faults.shuffle=true"})), Lines{"faults.shuffle"});
  EXPECT_EQ(keys_of(RunIn::kNetwork, parse(kGood, simulated)), Lines{});
  Lines limits;
  for (const char* limit :
       {"join_deadline_ms", "quarantine_s", "connections_per_address", "min_bytes_per_second"}) {
    served.push_back("server." + std::string(limit) + "=7");
    limits.push_back("server." + std::string(limit));
  }
  EXPECT_EQ(keys_of(RunIn::kNetwork, parse(kGood, served)),
            (Lines{"server.overlap", "server.durability", limits[0], "server.tls_min", limits[1], limits[2],
                   limits[3], "server.staging_budget", "server.zerocopy"}));
  EXPECT_EQ(keys_of(RunIn::kMemory, parse(kGood, served)), Lines{});
}

// The file that a run writes can be run again without a warning.
TEST(IdleKeys, AreNotInTheFileThatARunWrites) {
  for (const auto& [algorithm, parameters] : std::vector<std::pair<std::string, Options>>{
           {"asgd", {{"max_delay", "4"}}},
           {"marina", {{"mu", "0.1"}}},
           {"fednl", {{"mu", "0"}, {"option", "2"}, {"c", "0.3"}}}}) {
    ExperimentSpec e = parse(kQuadratic).experiment;
    AlgorithmSpec spec = algorithm_spec(e);
    spec.name = algorithm;
    spec.step_size = "0.5";
    spec.parameters = parameters;
    set_algorithm(e, spec);
    EXPECT_FALSE(idle_parameters(algorithm_spec(e)).empty());
    EXPECT_EQ(idle(to_toml(e)), Lines{}) << to_toml(e);
  }
}

// Returns a value that the field accepts and that differs from its current one.
std::string other_value(const Field& field) {
  for (const char* text : {"true",   "false",        "3",     "0.5",  "1",      "2",       "3",    "none",
                           "normal", "libsvm:other", "off",   "warn", "groups", "samples", "l2",   "iid",
                           "last",   "every",        "power", "fp32", "TLS1.2", "tanh",    "relu", "mean"}) {
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

// Sets each key alone, for every problem type. A warning must appear if and only if the key says that it is
// idle. The test lists the keys, so that a new condition does not go unnoticed.
TEST(IdleKeys, CauseAWarningForEveryField) {
  std::set<std::string> warned, quiet;
  for (const ProblemInfo& kind : problem_types()) {
    const std::string base = "[problem]\nkind = \"" + std::string(kind.name) + "\"\n" +
                             (kind.data == DataForm::kNone   ? "dim = 10\n"
                              : kind.data == DataForm::kRows ? "data = \"libsvm:a9a\"\n"
                                                             : "data = \"text:a\"\n") +
                             "[algorithm]\nname = \"gd\"\n[run]\nevaluate_every = ";
    for (const char* every : {"1\n", "0\n"}) {
      ExperimentSpec e = parse(base + every).experiment;
      for (const KeySection& section : sections_of(e))
        for (const Field& field : section.fields) {
          const std::string path = section.path(field.key), value = other_value(field);
          if (value.empty() || !error_of(base + every, {path + "=" + value}).empty()) continue;
          const LoadedExperiment changed = parse(base + every, {path + "=" + value});
          ExperimentSpec after = changed.experiment;
          bool is_idle = false;
          for (const KeySection& s : sections_of(after))
            for (const Field& f : s.fields)
              is_idle |= s.path(f.key) == path && !f.constraints.idle_by.empty();
          const Lines lines = idle_keys(changed);
          EXPECT_EQ(lines.size(), is_idle ? 1u : 0u) << path << " = " << value;
          if (is_idle) {
            EXPECT_TRUE(lines.at(0).starts_with(std::string(field.key) + " has no effect with ")) << lines[0];
          }
          (is_idle ? warned : quiet).insert(path);
        }
    }
  }
  EXPECT_EQ(warned, (std::set<std::string>{
                        "clients.dirichlet_alpha", "clients.partition", "clients.placement",
                        "clients.weights", "evaluation.accuracy", "evaluation.clients",
                        "evaluation.grad_norm", "problem.activation", "problem.classes", "problem.columns",
                        "problem.label", "problem.missing", "problem.noise", "problem.samples",
                        "run.client_metrics", "server.client_state_replicas", "server.norm_action"}));
  EXPECT_TRUE(quiet.count("run.rounds") && quiet.count("problem.lambda") && quiet.count("server.quorum"));
}

TEST(IdleKeys, CauseAWarningForEveryParameterWithACondition) {
  std::set<std::string> found;
  for (const AlgorithmInfo& algorithm : all_algorithms())
    for (const ParameterHelp& parameter : algorithm.parameters) {
      for (const char* value : {"0.5", "2", "1", "true", "zero", "ignore"}) {
        AlgorithmSpec spec;
        spec.name = algorithm.traits.name;
        if (parameter.name != "step_size") spec.step_size = "0.25";
        spec.parameters = {{parameter.name, value}};
        try {
          for (const IdleParameter& idle : idle_parameters(spec)) {
            EXPECT_EQ(idle.key, parameter.name);
            found.insert(idle.key + " by " + idle.by);
          }
        } catch (const ConfigError&) {
        }
      }
    }
  EXPECT_EQ(found, (std::set<std::string>{"c by line_search", "horizon by schedule", "max_delay by step_size",
                                          "mu by option", "mu by step_size"}));
}

}  // namespace
}  // namespace gradwire
