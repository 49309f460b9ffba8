// Tests of run plans of a simulation, a server, a restarted server and a client.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>

#include "config/settings.h"
#include "engine/data/readers/source.h"
#include "fl_server/plan_of_joins.h"
#include "simulation/prepare.h"
#include "tests/algorithms/every_algorithm.h"
#include "tests/support/data_files.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

constexpr const char* kSkewed = R"(
name = "skewed"
seed = 5
[problem]
kind = "least_squares"
data = "synthetic"
samples = 200
dim = 12
[clients]
count = 4
partition = "dirichlet"
dirichlet_alpha = 0.3
weights = "samples"
[algorithm]
name = "marina"
compressor = "randk:k=3"
p = 0.25
step_size = 0.01
[run]
x0 = "normal"
)";

LoadedExperiment skewed(std::vector<std::string> overrides = {}) {
  return parse_experiment(kSkewed, "skewed.toml", overrides);
}

// Returns the clients of a simulation as they would join a server. Client `empty` joins without samples.
ClientTable joined(const Prepared& prepared, std::optional<ClientId> empty = {}) {
  ClientTable table(prepared.n());
  for (ClientId i = 0; i < table.size(); ++i) {
    ClientInfo info;
    info.name = "c" + std::to_string(i);
    info.columns = 12;
    info.labels = prepared.schema.labels;
    info.sample_count = i == empty ? 0 : prepared.data.train_count(i);
    const ClientSmoothness of =
        client_smoothness(prepared.problem, prepared.schema, prepared.data.part(i), i);
    info.smoothness = of.L_i;
    info.convexity = of.mu_i;
    info.sample_smoothness = of.L_s;
    info.sample_smoothness_max = of.L_sample_max;
    EXPECT_EQ(table.assign(info.name, {}, {}).value(), i);
    EXPECT_TRUE(table.join(i, info));
  }
  return table;
}

void expect_same_run_context(const RunContext<double>& a, const RunContext<double>& b) {
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.n, b.n);
  EXPECT_EQ(a.d, b.d);
  EXPECT_EQ(a.algorithm.name, b.algorithm.name);
  EXPECT_EQ(a.algorithm.step_size, b.algorithm.step_size);
  EXPECT_EQ(a.algorithm.parameters, b.algorithm.parameters);
  const CompressorConstants qa = constants(a.compressor, a.d), qb = constants(b.compressor, b.d);
  EXPECT_EQ(qa.omega, qb.omega);
  EXPECT_EQ(qa.zeta, qb.zeta);
}

TEST(RunPlan, IsTheSameAtAServerAsInASimulation) {
  const LoadedExperiment loaded = skewed();
  const Prepared simulated = prepare(loaded);
  const RunPlan served = plan_of_joins(loaded, joined(simulated));
  EXPECT_EQ(served.d, 12u);
  EXPECT_EQ(served.samples, 200u);
  EXPECT_EQ(served.d, simulated.d);
  EXPECT_EQ(served.samples, simulated.samples);
  ASSERT_EQ(served.weights.size(), 4u);
  EXPECT_EQ(served.weights, simulated.weights);
  EXPECT_EQ(served.x0, simulated.x0);
  EXPECT_EQ(served.constants.A, simulated.constants.A);
  EXPECT_EQ(to_toml(served.asked), to_toml(simulated.asked));
  EXPECT_EQ(to_toml(served.experiment), to_toml(simulated.experiment));
  const auto one = make_run_context<double>(simulated, Role::kSimulation);
  const auto other = make_run_context<double>(served, Role::kServer);
  expect_same_run_context(*one, *other);
  EXPECT_EQ(one->x0, other->x0);
  EXPECT_EQ(one->weights, other->weights);
  EXPECT_FALSE(one->keep_client_state_replicas) << "no client of this simulation loses its state";
  EXPECT_TRUE(other->keep_client_state_replicas);
}

TEST(RunPlan, IsTheSameInALaterProcessExceptForTheStart) {
  const LoadedExperiment loaded = skewed({"algorithm.step_size=theory", "algorithm.p=theory"});
  const ClientTable table = joined(prepare(loaded));
  const RunPlan first = plan_of_joins(loaded, table);
  ASSERT_TRUE(first.smoothness);
  EXPECT_NE(first.experiment.algorithm.step_size, "theory");
  const RunPlan later = plan_of_snapshot(first.asked, first.experiment, table);
  EXPECT_EQ(to_toml(later.asked), to_toml(first.asked));
  EXPECT_EQ(to_toml(later.experiment), to_toml(first.experiment));
  EXPECT_EQ(later.weights, first.weights);
  EXPECT_EQ(later.samples, first.samples);
  EXPECT_EQ(later.smoothness->L, first.smoothness->L);
  EXPECT_EQ(later.needed.smoothness, "algorithm.step_size");
  EXPECT_EQ(later.x0, std::vector<double>(12));
  expect_same_run_context(*make_run_context<double>(first, Role::kServer),
                          *make_run_context<double>(later, Role::kServer));
}

// Returns an experiment with the step size of theory, and with numbers for the parameters that theory cannot
// derive from this problem.
LoadedExperiment by_theory(const AlgorithmInfo& algorithm, const std::string& problem, bool knows_convexity) {
  const std::string name(algorithm.traits.name);
  const bool takes_none = algorithm.traits.asynchronous || name == "ef21_p";
  std::string text = "name = \"t\"\n[problem]\n" + problem + "[clients]\ncount = 4\n";
  if (name == "coded_gd" && problem.find("data") != problem.npos) text += "replication = 2\n";
  text += "[algorithm]\nname = \"" + name + "\"\n";
  text += "compressor = \"" + (takes_none ? "identity" : testing::compressor_for(algorithm.traits)) + "\"\n";
  for (const ParameterHelp& parameter : algorithm.parameters) {
    if (parameter.name == "compressor_down") text += "compressor_down = \"topk:k=4\"\n";
    if (!knows_convexity && (name == "adiana" || name == "nesterov") && parameter.name == "mu")
      text += "mu = 1e-6\n";
    if (!knows_convexity && name == "proxskip" && parameter.name == "p") text += "p = 0.5\n";
  }
  return parse_experiment(text, name + ".toml", {});
}
// Returns the smaller of the step sizes of the server and the clients.
double step_of(const ExperimentSpec& e) {
  double step = std::stod(e.algorithm.step_size);
  for (const auto& [key, value] : algorithm_spec(e).parameters)
    if (key == "local_step_size") step = std::min(step, std::stod(value));
  return step;
}

constexpr const char* kQuadratics = "kind = \"quadratic\"\ndim = 12\nlambda = 0.1\n";
constexpr const char* kLogistic =
    "kind = \"logistic\"\ndata = \"synthetic\"\nsamples = 80\ndim = 12\nregularizer = \"l2\"\nlambda = 0.1\n";

TEST(RunPlan, HasATheoryStepForEveryAlgorithmInSimulationsAndServers) {
  for (const AlgorithmInfo& algorithm : all_algorithms()) {
    SCOPED_TRACE(algorithm.traits.name);
    EXPECT_GT(step_of(prepare(by_theory(algorithm, kQuadratics, true)).experiment), 0);
    const LoadedExperiment logistic = by_theory(algorithm, kLogistic, true);
    const Prepared simulated = prepare(logistic);
    EXPECT_GT(step_of(simulated.experiment), 0);
    EXPECT_EQ(constants_to_ask(logistic).any(), algorithm.traits.name != "fednl");
    EXPECT_GT(step_of(plan_of_joins(logistic, joined(simulated)).experiment), 0);
  }
}

TEST(RunPlan, HasATheoryStepForEveryAlgorithmWithEstimatedConstants) {
  for (const AlgorithmInfo& algorithm : all_algorithms()) {
    if (algorithm.traits.needs_hessian) continue;
    SCOPED_TRACE(algorithm.traits.name);
    const Prepared prepared = prepare(by_theory(
        algorithm, "kind = \"mlp\"\ndata = \"synthetic\"\nsamples = 40\ndim = 5\nhidden = [3]\n", false));
    EXPECT_GT(step_of(prepared.experiment), 0);
    EXPECT_TRUE(std::ranges::any_of(prepared.warnings, [](const std::string& warning) {
      return warning.find("theory uses estimates") != warning.npos;
    }));
  }
}

// Constants of large data are computed only if theory needs them.
TEST(RunPlan, HasATheoryStepForLargeData) {
  const std::string large =
      "kind = \"logistic\"\ndata = \"synthetic\"\nsamples = 100001\ndim = 52\nregularizer = "
      "\"l2\"\nlambda = 0.1\n";
  for (const AlgorithmInfo& algorithm : all_algorithms()) {
    const std::string_view name = algorithm.traits.name;
    if (name != "asgd" && name != "ringmaster" && name != "mindflayer" && name != "ef21_p" &&
        name != "ef21_bc")
      continue;
    if (kSanitized && name != "mindflayer") continue;  // all have the same data
    SCOPED_TRACE(name);
    EXPECT_GT(step_of(prepare(by_theory(algorithm, large, true)).experiment), 0);
  }
}

TEST(RunPlan, GivesAClientAllThatItsPartOfTheAlgorithmReads) {
  const LoadedExperiment loaded = skewed();
  const RunPlan served = plan_of_joins(loaded, joined(prepare(loaded)));
  const auto run_context =
      make_run_context<double>(plan_of_start(served.experiment, served.schema), Role::kClient);
  expect_same_run_context(*run_context, *make_run_context<double>(served, Role::kServer));
  EXPECT_TRUE(run_context->x0.empty());
  EXPECT_FALSE(run_context->keep_client_state_replicas);
}

TEST(RunPlan, WarnsOfANormActionWithoutALimit) {
  const auto warnings = [](std::vector<std::string> overrides) {
    return prepare(skewed(overrides)).warnings;
  };
  std::vector<std::string> expected = warnings({});
  EXPECT_EQ(warnings({"server.norm_action=warn", "server.norm_limit=10"}), expected);
  expected.insert(expected.begin(), "norm_action has no effect with norm_limit = 0.0");
  EXPECT_EQ(warnings({"server.norm_action=warn"}), expected);
}

TEST(RunPlan, ReportsProblemsOfItsClientsActivationsAtAServer) {
  ClientTable table(2);
  for (ClientId i = 0; i < table.size(); ++i) {
    ClientInfo info;
    info.name = "c" + std::to_string(i);
    info.columns = 64;
    info.sample_count = 10;
    info.labels = {0, 1, 2};
    EXPECT_EQ(table.assign(info.name, {}, {}).value(), i);
    EXPECT_TRUE(table.join(i, info));
  }
  const auto plan = [&](const std::string& keys) {
    return plan_of_joins(
        parse_experiment("[problem]\nkind = \"mlp\"\ndata = \"digits\"\nhidden = [16]\n" + keys +
                             "\n[clients]\ncount = 2\n[algorithm]\nname = \"gd\"\nstep_size = 0.1\n",
                         "net.toml"),
        table);
  };
  EXPECT_EQ(plan("").warnings, std::vector<std::string>());
  const std::vector<std::string> warnings = plan("activation_dtype = \"bfloat16\"").warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].find("problem.activation_dtype = \"bfloat16\" saves no memory in this model"), 0u);
  try {
    plan("activation_budget = \"1KB\"");
    FAIL() << "no network fits into 1 KB";
  } catch (const ExperimentError& error) {
    const std::string start = "net.toml:5: activation_budget is too small for this model: it needs \"";
    EXPECT_EQ(std::string(error.what()).substr(0, start.size()), start);
  }
}

TEST(RunPlan, NamesTheClientsWhoseLabelsDiffer) {
  ClientTable table(3);
  const auto join = [&](ClientId i, const std::string& name, std::vector<double> labels) {
    ClientInfo info;
    info.name = name;
    info.columns = 4;
    info.sample_count = 10;
    info.labels = std::move(labels);
    EXPECT_EQ(table.assign(info.name, {}, {}).value(), i);
    EXPECT_TRUE(table.join(i, info));
  };
  join(0, "north", {-1, 1});
  join(1, "east", {-1, 1});
  join(2, "south", {0, 1});
  const auto plan = [&](const std::string& kind) {
    return plan_of_joins(
        parse_experiment("[problem]\nkind = \"" + kind +
                             "\"\ndata = \"libsvm:x\"\n[clients]\ncount = 3\n[algorithm]\nname "
                             "= \"gd\"\nstep_size = 0.1\n",
                         "labels.toml"),
        table);
  };
  const std::string owners =
      ": client 'north' has the labels -1, 1, client 'south' has 0, 1; if they mean the same classes, use "
      "the same labels in all data";
  EXPECT_EQ(data_error([&] { plan("logistic"); }),
            "logistic regression needs exactly two labels but the data has 3: -1, 0, 1; for more classes use "
            "kind = \"mlp\"" +
                owners);
  EXPECT_EQ(plan("mlp").warnings, std::vector<std::string>{"-1 and 0 are two classes here" + owners});
}

TEST(RunPlan, NamesTheClientsThatLackLabels) {
  const auto warnings = [](const std::vector<std::vector<double>>& labels) {
    ClientTable table(static_cast<std::uint32_t>(labels.size()));
    for (ClientId i = 0; i < table.size(); ++i) {
      ClientInfo info;
      info.name = "c" + std::to_string(i);
      info.columns = 4;
      info.sample_count = 10;
      info.labels = labels[i];
      EXPECT_EQ(table.assign(info.name, {}, {}).value(), i);
      EXPECT_TRUE(table.join(i, info));
    }
    return plan_of_joins(
               parse_experiment("[problem]\nkind = \"mlp\"\ndata = \"libsvm:x\"\n[clients]\ncount = " +
                                    std::to_string(labels.size()) +
                                    "\n[algorithm]\nname = \"gd\"\nstep_size = 0.1\n",
                                "labels.toml"),
               table)
        .warnings;
  };
  const std::string remedy = "; all clients must give a class the same label (problem.labels numbers texts)";
  EXPECT_TRUE(warnings({{0, 1, 2}, {0, 1, 2}}).empty());
  EXPECT_EQ(warnings({{0, 1, 2}, {1, 3, 4}, {0, 1, 2, 3, 4}}),
            std::vector<std::string>{"not all clients have all labels (5: 0, 1, 2, 3, 4): c0 lacks 3, 4; c1 "
                                     "lacks 0, 2" +
                                     remedy});
  EXPECT_NE(warnings({{0}, {1}, {1}, {1}, {1}, {1}, {1}})[0].find("c4 lacks 0; 2 more clients lack some"),
            std::string::npos);
}

// The clients that have joined a server before another one.
class RunPlanJoin : public ::testing::Test {
 protected:
  static ClientInfo client(const std::string& name, std::vector<double> labels) {
    ClientInfo info;
    info.name = name;
    info.columns = 4;
    info.sample_count = 10;
    info.labels = std::move(labels);
    return info;
  }
  // Returns why the server refuses the client, or "".
  std::string refusal(const ClientInfo& info, const std::string& kind = "logistic") const {
    const LoadedExperiment loaded =
        parse_experiment("[problem]\nkind = \"" + kind + "\"\ndata = \"csv:x\"\n[clients]\ncount = 4\n" +
                             "[algorithm]\nname = \"gd\"\nstep_size = 0.1\n",
                         "tables.toml");
    const Status status = check_client(info, loaded.experiment, [this](ClientId other) {
      return other < joined.size() ? joined[other] ? &*joined[other] : nullptr : nullptr;
    });
    return status ? "" : status.error().message;
  }
  std::vector<std::optional<ClientInfo>> joined;
};

TEST_F(RunPlanJoin, RefusesAClientWhoseTableHasOtherColumns) {
  joined = {client("old", {-1, 1}), std::nullopt, client("client-2", {-1, 1})};
  joined[2]->table_hash = 77;
  ClientInfo south = client("south", {-1, 1});
  south.table_hash = 78;
  const std::string remedy =
      "; the log of each client lists its columns; give both tables the same columns with the same names in "
      "the same order";
  const std::string start = "the columns of its table are not those of 'client-2', which joined before: ";
  EXPECT_EQ(refusal(south), start + "other names, or another order" + remedy);
  south.columns = 3;
  EXPECT_EQ(refusal(south), start + "3 features, not 4" + remedy);
  south.table_hash = 77;
  EXPECT_EQ(refusal(south), "");
  south.table_hash = std::nullopt;
  EXPECT_EQ(refusal(south), "") << "a client without a table, or of an earlier release";
  joined.clear();
  south.table_hash = 78;
  EXPECT_EQ(refusal(south), "") << "the first one decides";
}

TEST_F(RunPlanJoin, RefusesAClientWhoseLabelsDoNotFit) {
  joined = {std::nullopt, client("north", {-1, 1})};
  EXPECT_EQ(
      refusal(client("south", {0, 1})),
      "logistic regression needs exactly two labels but the data has 3: -1, 0, 1; for more classes use "
      "kind = \"mlp\": its labels are 0, 1, those of client 'north', which joined before, are -1, 1; if "
      "they mean the same classes, use the same labels in all data");
  EXPECT_EQ(refusal(client("south", {0, 1}), "mlp"), "") << "three classes are possible; the plan warns";
  EXPECT_EQ(refusal(client("south", {1})), "");
  joined = {client("a", {0}), client("b", {1})};
  EXPECT_EQ(refusal(client("c", {0})), "");
  EXPECT_NE(refusal(client("c", {2})), "");
  joined = {client("a", {0})};
  EXPECT_EQ(refusal(client("b", {1})), "") << "one class each";
  EXPECT_NE(refusal(client("b", {1, 2})), "");
  EXPECT_EQ(refusal(client("b", {0})), "") << "another client may have the other class";
}

TEST(RunPlan, WarnsOfClientsWithTheSameSamples) {
  const auto warnings = [](std::vector<std::optional<std::uint64_t>> hashes) {
    ClientTable table(3);
    for (ClientId i = 0; i < 3; ++i) {
      ClientInfo info;
      info.columns = 4;
      info.sample_count = 10;
      info.labels = {-1, 1};
      info.data_hash = hashes[i];
      EXPECT_EQ(table.assign(std::vector{"client-0", "east", "south"}[i], {}, {}).value(), i);
      EXPECT_TRUE(table.join(i, info));
    }
    return plan_of_joins(
               parse_experiment("[problem]\nkind = \"logistic\"\ndata = \"csv:x\"\n[clients]\ncount = 3\n"
                                "[algorithm]\nname = \"gd\"\nstep_size = 0.1\n",
                                "same.toml"),
               table)
        .warnings;
  };
  EXPECT_EQ(
      warnings({7, 8, 7}),
      std::vector<std::string>{"'client-0' and client 'south' have the same samples, which then count twice; "
                               "was one started with the file of the other?"});
  EXPECT_EQ(warnings({7, 8, 9}), std::vector<std::string>());
  EXPECT_EQ(warnings({std::nullopt, 8, std::nullopt}), std::vector<std::string>());
}

TEST_F(RunPlanJoin, RefusesTooManyLabelsBeforeTheyEndTheRunForAll) {
  const std::string three =
      "logistic regression needs exactly two labels but the data has 3: 0, 1, 2; for more classes use kind = "
      "\"mlp\"";
  EXPECT_EQ(refusal(client("a", {0, 1, 2})), three);
  joined = {client("north", {0, 1})};
  EXPECT_EQ(refusal(client("a", {0, 1, 2})), three);
  EXPECT_EQ(refusal(client("a", {0, 1, 2}), "mlp"), "");
}

TEST(RunPlan, RefusesTheoryWithoutCurvature) {
  const TemporaryFolder folder;
  folder.write("zeros", "1 1:0 2:0\n-1 1:0 2:0\n");
  const auto error = [&](const std::string& step) -> std::string {
    try {
      prepare(
          parse_experiment("[problem]\nkind = \"logistic\"\ndata = \"libsvm:zeros\"\n[clients]\ncount = 2\n"
                           "[algorithm]\nname = \"gd\"\nstep_size = " +
                               step + "\n",
                           folder.path() / "t.toml"));
    } catch (const ExperimentError& e) {
      return std::string(e.what()).substr(folder.path().string().size());
    }
    return "";
  };
  EXPECT_EQ(
      error("\"theory\""),
      "/t.toml:8: theory has no step size if L = 0: f has no curvature, as when all features are 0; check "
      "the data, or give a number");
  EXPECT_EQ(error("0.5"), "");
}

TEST(RunPlan, WarnsOfAnOverlapWithoutEffect) {
  const auto warning = [](const std::string& algorithm, const std::string& compressor) -> std::string {
    const Prepared prepared =
        prepare(parse_experiment("[problem]\nkind = \"quadratic\"\ndim = 9\n[server]\noverlap = true\n"
                                 "zstd = \"off\"\n[algorithm]\nname = \"" +
                                     algorithm + "\"\ncompressor = \"" + compressor + "\"\nstep_size = 0.1\n",
                                 "t.toml"));
    for (const std::string& line : prepared.warnings)
      if (line.starts_with("server.overlap")) return line;
    return "";
  };
  EXPECT_EQ(warning("diana", "randk:k=3"), "");
  EXPECT_EQ(warning("gd", "identity"), "");
  const std::string end =
      " compute the whole reply before they send it; it works for gd, nesterov, dcgd, sgd_nice, diana, "
      "ef21_p "
      "with identity, randk, randseqk or permk";
  EXPECT_EQ(warning("diana", "natural"),
            "server.overlap = true has no effect: clients of diana with natural" + end);
  EXPECT_EQ(warning("ef21", "topk:k=3"),
            "server.overlap = true has no effect: clients of ef21 with topk:k=3" + end);
}

TEST(RunPlan, WarnsOfRandomPathsThatTheProblemLacks) {
  const auto warned = [](const std::string& problem) {
    const Prepared prepared = prepare(parse_experiment(
        "[problem]\n" + problem + "\n[algorithm]\nname = \"gd\"\nbackprop_fraction = 0.5\nstep_size = 0.1\n",
        "t.toml"));
    return std::ranges::any_of(prepared.warnings, [](const std::string& line) {
      return line.starts_with("algorithm.backprop_fraction");
    });
  };
  EXPECT_TRUE(warned("kind = \"quadratic\"\ndim = 9"));
  EXPECT_TRUE(warned("kind = \"mlp\"\ndata = \"digits\"\nhidden = [60]"));
  EXPECT_FALSE(warned("kind = \"mlp\"\ndata = \"digits\"\nhidden = [9, 60]"));
}

TEST(RunPlan, RefusesAClientWhoseFeaturesDoNotFitIntoMemory) {
  ClientInfo info;
  info.name = "wide";
  info.sample_count = 1;
  info.columns = 0xFFFFFFF0;  // 500 GB for their sums
  for (const std::string problem :
       {"kind = \"logistic\"\ndata = \"libsvm:x\"", "kind = \"mlp\"\ndata = \"libsvm:x\""})
    for (const std::vector<double>& labels : {std::vector<double>{}, {1.0}, {-1.0, 1.0}}) {
      info.labels = labels;
      const LoadedExperiment loaded = parse_experiment("[problem]\n" + problem +
                                                           "\nnormalize = \"standard\"\n[clients]\ncount = "
                                                           "2\n[algorithm]\nname = \"gd\"\nstep_size = 0.1\n",
                                                       "t.toml");
      const Status refused = check_client(info, loaded.experiment);
      ASSERT_FALSE(refused) << problem << labels.size();
      EXPECT_NE(refused.error().message.find("do not fit into the server's memory"), std::string::npos);
    }
}

TEST(RunPlan, NamesAClientWithoutSamples) {
  const LoadedExperiment loaded = skewed();
  const ClientTable table = joined(prepare(loaded), 2);
  try {
    plan_of_joins(loaded, table);
    FAIL() << "no client may be empty";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "client 2 has no samples");
  }
  const Status refused = check_client(table.info(2), loaded.experiment);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "its data has no sample for training; add samples, or start it with other data");
  EXPECT_TRUE(check_client(table.info(1), loaded.experiment));
}

}  // namespace
}  // namespace gradwire
