// The advice of errors: an experiment that follows it can be planned.
#include <gtest/gtest.h>
#include <regex>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "experiments/cli/run/monitor_plan.h"
#include "gradwire/bad_input.h"
#include "simulation/prepare.h"
#include "tests/config/experiment_text.h"

namespace gradwire {
namespace {

using Sets = std::vector<std::string>;

const std::string kQuadratics =
    "[problem]\nkind = \"quadratic\"\ndim = 20\n[clients]\ncount = 4\n[algorithm]\nname = "
    "\"gd\"\n[run]\nrounds = 3\n";
const std::string kRows =
    "[problem]\nkind = \"logistic\"\ndata = \"synthetic\"\ndim = 20\nsamples = 200\n[clients]\ncount = 4\n"
    "[algorithm]\nname = \"gd\"\n[run]\nrounds = 3\n";
const std::string kText =
    "[problem]\nkind = \"gpt\"\ndata = \"text:names\"\n[clients]\ncount = 2\n[algorithm]\nname = \"gd\"\n"
    "step_size = 0.1\n[run]\nrounds = 3\n";

// Returns the error line of making a plan of the experiment, or "" if it can be planned.
std::string trouble(const std::string& toml, const Sets& sets) {
  static const Folder folder;
  static const bool is_written = [] {
    std::string names;
    for (int k = 0; k < 200; ++k) names += std::string(1, static_cast<char>('a' + k % 20)) + "nna\n";
    folder.write("names", names);
    return true;
  }();
  EXPECT_TRUE(is_written);
  try {
    const Prepared prepared = prepare(parse_experiment(toml, folder.path / "a.toml", sets));
    if (prepared.experiment.run.monitor) monitor_plan(prepared);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

// One piece of advice: its words in the error, and the settings that follow it. They come after those of the
// wrong experiment. `without` is a wrong setting that the advice takes away.
struct Advice {
  std::string words;
  Sets sets = {};
  std::string without = {};
};
struct WrongExperiment {
  std::string toml;
  Sets sets;
  std::vector<Advice> advice;
};

Sets followed(const WrongExperiment& wrong, const Advice& advice) {
  Sets sets;
  for (const std::string& set : wrong.sets)
    if (set.substr(0, set.find('=')) != advice.without) sets.push_back(set);
  sets.insert(sets.end(), advice.sets.begin(), advice.sets.end());
  return sets;
}

std::string name(const std::string& algorithm) { return "algorithm.name=" + algorithm; }
std::string compressor(const std::string& spec) { return "algorithm.compressor=" + spec; }

const std::vector<WrongExperiment>& wrong_experiments() {
  static const std::vector<WrongExperiment> all = {
      // compressors
      {kQuadratics,
       {name("ef21"), compressor("qsgd")},
       {{"write scaled(qsgd)", {compressor("scaled(qsgd)")}}, {"or use topk", {compressor("topk:k=1")}}}},
      {kQuadratics,
       {name("ef21_bc"), compressor("topk:k=1"), "algorithm.compressor_down=qsgd", "algorithm.init=gradient"},
       {{"write scaled(qsgd)", {"algorithm.compressor_down=scaled(qsgd)"}},
        {"or use topk", {"algorithm.compressor_down=topk:k=1"}}}},
      {kQuadratics,
       {name("ef21"), compressor("rankr")},
       {{"use it with fednl", {name("fednl")}}, {"there is rankk", {compressor("rankk")}}}},
      {kQuadratics,
       {name("ef21_p"), compressor("identity"), "algorithm.compressor_down=rankr"},
       {{"use rankk", {"algorithm.compressor_down=rankk"}}}},
      {kQuadratics,
       {name("asgd"), compressor("permk")},
       {{"use randk", {compressor("randk"), "step_size=0.1"}}}},
      {kQuadratics, {name("dcgd"), compressor("permk:n=3")}, {{"leave n out", {compressor("permk")}}}},
      {kQuadratics,
       {name("ef21"), compressor("scaled")},
       {{"write scaled(C)", {compressor("scaled(qsgd)")}}}},
      {kQuadratics,
       {name("ef21"), compressor("topk(qsgd")},
       {{"write OUTER(INNER)", {compressor("qsgd(topk)")}}}},
      {kQuadratics,
       {name("ef21"), compressor("scaled(topk)")},
       {{"as randk and natural are", {compressor("scaled(randk)")}}}},
      {kQuadratics,
       {name("gd"), "partial_gradient=true"},
       {{"use dcgd with randk or randseqk", {name("dcgd"), compressor("randseqk")}},
        {"leave it out", {}, "partial_gradient"}}},
      {kQuadratics,
       {name("dcgd"), compressor("natural"), "partial_gradient=true"},
       {{"natural(randk:k=1%)", {compressor("natural(randk:k=1%)")}}}},
      // parameters of algorithms
      {kQuadratics,
       {name("ef21"), compressor("topk"), "algorithm.batch=8"},
       {{"leave batch out", {}, "algorithm.batch"}, {"write \"full\"", {"algorithm.batch=full"}}}},
      {kRows,
       {name("page"), "algorithm.p=0.5"},
       {{"give batch", {"algorithm.batch=4"}}, {"leave p out", {}, "algorithm.p"}}},
      {kRows,
       {name("nesterov")},
       {{"give numbers for mu and step_size", {"algorithm.mu=1e-3", "step_size=0.1"}},
        {"problem.lambda above 0, with regularizer = \"l2\"",
         {"problem.lambda=0.1", "problem.regularizer=l2"}}}},
      {kQuadratics,
       {name("nesterov"), "problem.lambda=0"},
       {{"give numbers for mu and step_size", {"algorithm.mu=1e-9", "step_size=0.1"}},
        {"problem.lambda above 0", {"problem.lambda=0.1"}}}},
      {kQuadratics,
       {name("nesterov"), "step_size=5", "algorithm.mu=1"},
       {{"give a smaller step_size", {"step_size=0.5"}}}},
      {kQuadratics,
       {name("diana"), compressor("randk"), "algorithm.alpha=0.9"},
       {{"leave alpha to theory", {"algorithm.alpha=theory"}},
        {"give step_size a number", {"step_size=0.1"}}}},
      {kQuadratics,
       {name("fedavg"), "local_optimizer=adam"},
       {{"give a number", {"local_step_size=0.1"}}, {"leave out local_optimizer", {}, "local_optimizer"}}},
      {kQuadratics,
       {name("fedavg"), "local_steps=2", "local_epochs=2"},
       {{"give local_steps or local_epochs", {}, "local_steps"}, {"not both", {}, "local_epochs"}}},
      {kQuadratics, {name("fedavg"), "local_steps=0"}, {{"give at least 1", {"local_steps=1"}}}},
      {kQuadratics, {name("fedbuff"), "buffer=0"}, {{"give at least 1", {"buffer=1"}}}},
      {kQuadratics,
       {name("scaffold"), "local_optimizer=adam", "local_step_size=0.1"},
       {{"write option = \"1\"", {"algorithm.option=1"}}}},
      {kQuadratics,
       {name("asgd"), compressor("randk")},
       {{"give a number", {"step_size=0.1"}}, {"compressor = identity", {compressor("identity")}}}},
      {kQuadratics,
       {name("ef21_p"), compressor("randk"), "algorithm.compressor_down=topk"},
       {{"give a number", {"step_size=0.1"}}}},
      {kQuadratics,
       {name("ef21_bc"), compressor("topk"), "algorithm.init=zero"},
       {{"starts with gradient", {"algorithm.init=gradient"}},
        {"or compressed", {"algorithm.init=compressed"}}}},
      {kQuadratics,
       {name("ef21_pp"), compressor("topk"), "algorithm.p=\"0.5 0.5\""},
       {{"give one for each client", {"algorithm.p=\"0.5 0.5 0.5 0.5\""}},
        {"or one for all", {"algorithm.p=0.5"}}}},
      {kQuadratics,
       {name("ef21_w"), compressor("topk"), "algorithm.w=\"1 1 1 1\""},
       {{"divide each by this sum", {"algorithm.w=\"0.25 0.25 0.25 0.25\""}}}},
      {kQuadratics,
       {name("fwd_grad"), "directions=100"},
       {{"at most 20", {"directions=20"}}, {"use gd", {name("gd")}, "directions"}}},
      {kRows,
       {name("coded_gd"), "clients.replication=2", "server.quorum=0.5"},
       {{"raise it", {"server.quorum=0.75"}},
        {"or clients.replication", {"clients.replication=3"}},
        {"recovery = \"approximate\"", {"recovery=approximate"}}}},
      {kQuadratics, {name("gd"), "schedule=cosine", "run.rounds=0"}, {{"give it here", {"horizon=10"}}}},
      // sections
      {kQuadratics,
       {name("coded_gd"), "participation=0.5"},
       {{"write participation = 1", {"participation=1"}}}},
      {kQuadratics, {name("asgd"), "participation=0.5"}, {{"write participation = 1", {"participation=1"}}}},
      {kQuadratics,
       {name("marina"), compressor("randk"), "quorum=0.5"},
       {{"quorum must be 1", {"quorum=1"}}}},
      {kQuadratics,
       {name("marina"), compressor("randk"), "over_selection=0.5"},
       {{"over_selection must be 0", {"over_selection=0"}}}},
      {kQuadratics,
       {name("asgd"), "over_selection=0.5"},
       {{"over_selection must be 0", {"over_selection=0"}}}},
      {kQuadratics, {name("asgd"), "weights=samples"}, {{"weights must be equal", {"weights=equal"}}}},
      {kQuadratics,
       {name("ef21"), compressor("topk"), "over_selection=0.5"},
       {{"needs clients.participation below 1", {"participation=0.5"}},
        {"lower server.quorum", {"quorum=0.5"}, "over_selection"}}},
      {kQuadratics,
       {name("ef21_p"), "over_selection=0.5"},
       {{"lower server.quorum", {"quorum=0.5"}, "over_selection"}}},
      {kQuadratics,
       {"overlap=true"},
       {{"set server.zstd to \"off\"", {"zstd=off"}}, {"or overlap to false", {"overlap=false"}}}},
      {kQuadratics,
       {name("ef21"), compressor("topk"), "norm_limit=1", "norm_action=halve"},
       {{"must be \"reject\"", {"norm_action=reject"}}, {"or \"warn\"", {"norm_action=warn"}}}},
      {kQuadratics,
       {name("ef14"), compressor("topk"), "step_size=0.1", "crashes=0.1"},
       {{"crashes must be 0", {"crashes=0"}}}},
      {kQuadratics,
       {name("ef14"), compressor("topk"), "step_size=0.1", "state_loss=0.1"},
       {{"state_loss must be 0", {"state_loss=0"}}}},
      {kQuadratics,
       {name("diana"), compressor("randk"), "state_loss=0.1", "client_state_replicas=false"},
       {{"write client_state_replicas = \"auto\"", {"client_state_replicas=auto"}}}},
      {kQuadratics,
       {name("diana"), compressor("randk"), "crashes=0.1", "client_state_replicas=false"},
       {{"write client_state_replicas = \"auto\"", {"client_state_replicas=auto"}}}},
      {kQuadratics, {"stop_at_loss=1", "evaluate_every=0"}, {{"set it to 1 or more", {"evaluate_every=1"}}}},
      {kQuadratics,
       {"stop_at_accuracy=0.9", "evaluation.accuracy=false"},
       {{"accuracy must be true", {"evaluation.accuracy=true"}}}},
      {kQuadratics,
       {"stop_at_grad_norm_sq=0.9", "grad_norm=none"},
       {{"must be \"every\"", {"grad_norm=every"}}, {"or \"auto\"", {"grad_norm=auto"}}}},
      {kQuadratics, {"faults.shuffle=true", "latency=1"}, {{"shuffle has no effect", {}, "faults.shuffle"}}},
      {kQuadratics,
       {"monitor=true", "problem.lambda=0"},
       {{"give problem.lambda above 0", {"problem.lambda=0.1"}},
        {"write monitor = false", {"monitor=false"}}}},
      {kQuadratics, {name("fedavg"), "monitor=true"}, {{"write monitor = false", {"monitor=false"}}}},
      {kQuadratics,
       {name("diana"), compressor("randk"), "monitor=true", "client_state_replicas=false"},
       {{"must be \"auto\"", {"client_state_replicas=auto"}},
        {"or \"true\"", {"client_state_replicas=true"}}}},
      // data
      {kRows,
       {"problem.kind=mlp", name("fednl"), compressor("topk")},
       {{"use quadratic, least_squares", {"problem.kind=least_squares"}},
        {"or logistic", {"problem.kind=logistic"}}}},
      {kRows, {"partition=by_role"}, {{"use iid", {"partition=iid"}}}},
      {kRows + "[faults]\n",
       {"problem.kind=least_squares", "classes=0", "partition=by_role"},
       {{"use iid", {"partition=iid"}}}},
      {kText,
       {"partition=by_label"},
       {{"use contiguous", {"partition=contiguous"}}, {"or iid", {"partition=iid"}}}},
      {kText, {"context=2000"}, {{"lower problem.context", {"context=8"}}}},
      {kRows,
       {"samples_per_client=9", "partition=iid"},
       {{"leave one of them out", {}, "partition"}, {"leave one of them out", {}, "samples_per_client"}}},
      {kQuadratics, {"samples_per_client=9"}, {{"leave samples_per_client out", {}, "samples_per_client"}}},
      {kQuadratics, {"replication=2"}, {{"write replication = 1", {"replication=1"}}}},
      {kRows,
       {"replication=3", "placement=groups"},
       {{"change one of them", {"replication=2"}},
        {"change one of them", {"clients.count=6"}},
        {"write placement = \"ring\"", {"placement=ring"}}}},
      {kRows,
       {"replication=2", "partition=dirichlet"},
       {{"contiguous", {"partition=contiguous"}},
        {"iid", {"partition=iid"}},
        {"or by_label", {"partition=by_label"}}}},
      {kRows, {"classes=3"}, {{"use kind = \"mlp\"", {"problem.kind=mlp", "step_size=0.1"}}}},
      {kRows, {"problem.kind=mlp", "step_size=0.1", "classes=1"}, {{"or 2 or more", {"classes=2"}}}},
      {kRows, {"problem.kind=mlp", "step_size=0.1", "problem.data=digits"}, {{"raise", {"dim=64"}}}},
      {kRows,
       {"test=synthetic", "test_share=0.5"},
       {{"set one of them", {}, "test"}, {"set one of them", {}, "test_share"}}},
      {kRows,
       {"clients.count=300"},
       {{"lower clients.count", {"clients.count=20"}},
        {"or set clients.samples_per_client", {"samples_per_client=5"}}}},
      {kRows, {"samples_per_client=900"}, {{"lower it", {"samples_per_client=90"}}}},
      {kRows,
       {"problem.lambda=0.1"},
       {{"regularizer = \"l2\"", {"regularizer=l2"}}, {"or \"nonconvex\"", {"regularizer=nonconvex"}}}},
      {kRows,
       {"problem.kind=cnn", "step_size=0.1"},
       {{"set problem.image_height, problem.image_width", {"image_height=28", "image_width=28", "dim=784"}}}},
      {kRows,
       {"problem.kind=cnn", "step_size=0.1", "problem.data=digits", "dim=64"},
       {{"shorten problem.filters", {"filters=[6]"}}}},
      // words of single settings
      {kQuadratics, {"latency=*sqrt"}, {{"as in 0.1*sqrt", {"latency=0.1*sqrt"}}}},
      {kQuadratics, {"latency=sqrtt"}, {{"did you mean 'sqrt'?", {"latency=sqrt"}}}},
      {kQuadratics, {"latency=pareto:0.5"}, {{"as in pareto:1.5", {"latency=pareto:1.5"}}}},
      {kQuadratics, {"latency=lognormal:99"}, {{"as in lognormal:0.5", {"latency=lognormal:0.5"}}}},
      {kQuadratics, {"latency=sqrt+fail:2"}, {{"as in sqrt+fail:0.1", {"latency=sqrt+fail:0.1"}}}},
      {kQuadratics, {"name=a/b"}, {{"use no slashes", {"name=a-b"}}}},
      {kQuadratics + "[sweep]\n\"run.rounds\" = [1]\n", {}, {}},
  };
  return all;
}

TEST(Advice, LeadsToAnExperimentThatCanBePlanned) {
  for (const WrongExperiment& wrong : wrong_experiments()) {
    std::string typed;
    for (const std::string& set : wrong.sets) typed += " " + set;
    SCOPED_TRACE(typed);
    const std::string error = trouble(wrong.toml, wrong.sets);
    EXPECT_NE(error, "") << "nothing is wrong with this experiment";
    for (const Advice& advice : wrong.advice) {
      EXPECT_NE(error.find(advice.words), std::string::npos) << advice.words << " is not in: " << error;
      EXPECT_EQ(trouble(wrong.toml, followed(wrong, advice)), "")
          << "after: " << error << "\nas in: " << advice.words;
    }
  }
}

TEST(Advice, NamesTheMemoryThatANetworkNeeds) {
  const Sets tight = {"context=4", "width=8", "heads=2", "layers=1", "activation_budget=1KB"};
  const std::string error = trouble(kText, tight);
  std::smatch needed;
  ASSERT_TRUE(std::regex_search(error, needed, std::regex("needs \"(\\w+)\""))) << error;
  Sets enough = tight;
  enough.push_back("activation_budget=" + needed[1].str());
  EXPECT_EQ(trouble(kText, enough), "");
}

bool is_algorithm(const std::string& word) {
  return std::any_of(all_algorithms().begin(), all_algorithms().end(),
                     [&](const AlgorithmInfo& algorithm) { return algorithm.traits.name == word; });
}
bool is_compressor(const std::string& word) {
  for (const CompressorHelp& known : compressor_help())
    if (known.name == word) return true;
  return false;
}

// Every algorithm with every compressor: each algorithm and each compressor that the error names solves it.
TEST(Advice, NamesAlgorithmsAndCompressorsThatFit) {
  std::size_t tried = 0;
  for (const AlgorithmInfo& algorithm : all_algorithms())
    for (const CompressorHelp& help : compressor_help()) {
      if (help.name.find('(') != std::string::npos) continue;
      const Sets wrong = {name(std::string(algorithm.traits.name)), compressor(help.name)};
      const std::string error = trouble(kQuadratics, wrong);
      if (error.find("--set algorithm.compressor: ") != 0) continue;
      SCOPED_TRACE(error);
      const auto try_it = [&](const std::string& set) {
        Sets sets = wrong;
        sets.push_back(set);
        const std::string left = trouble(kQuadratics, sets);
        EXPECT_EQ(left.find("algorithm.compressor"), std::string::npos) << set << ": " << left;
        ++tried;
      };
      const std::string advice = error.substr(error.find(';') + 1);
      const std::regex word("[a-z_0-9]+(\\([^)]*\\))?");
      for (std::sregex_iterator at(advice.begin(), advice.end(), word), end; at != end; ++at) {
        const std::string found = at->str();
        if (found == help.name || found == algorithm.traits.name) continue;
        if (is_algorithm(found)) try_it(name(found));
        if (is_compressor(found) || found.starts_with("scaled(")) try_it(compressor(found));
      }
    }
  EXPECT_GT(tried, 100u);
}

// Values out of range of every parameter of every algorithm, where theory has no number for any step.
TEST(Advice, BlamesTheParameterThatIsOutOfRange) {
  std::size_t refused = 0;
  Theory theory;
  theory.n = 4;
  theory.d = 20;
  for (const AlgorithmInfo& algorithm : all_algorithms())
    for (const ParameterHelp& parameter : algorithm.parameters)
      for (const char* value : {"-1", "1.5", "1e9"}) {
        AlgorithmSpec spec;
        spec.name = algorithm.traits.name;
        if (parameter.name == "step_size") continue;
        if (algorithm.traits.compressor_class == CompressorClass::kContractive) spec.compressor = "topk";
        spec.parameters = {{parameter.name, value}};
        const auto error_with = [&](const std::string& step) -> std::string {
          std::vector<std::string> unused;
          AlgorithmSpec tried = spec;
          tried.step_size = step;
          try {
            resolve(tried, theory, unused);
          } catch (const ConfigError& error) {
            return error.key();
          }
          return "";
        };
        // With a number as step the parameter is the only thing that can be wrong.
        const std::string own = "algorithm." + parameter.name;
        if (error_with("0.01") != own) continue;
        ++refused;
        EXPECT_EQ(error_with("theory"), own)
            << algorithm.traits.name << " with " << parameter.name << " = " << value;
        EXPECT_EQ(error_with(""), own)
            << algorithm.traits.name << " with " << parameter.name << " = " << value;
      }
  EXPECT_GT(refused, 50u);
}

}  // namespace
}  // namespace gradwire
