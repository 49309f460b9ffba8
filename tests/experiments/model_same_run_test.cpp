// Thread count, transport and process boundaries change no bit of the training of a network.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/experiments/trace.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

struct Model {
  std::string name, problem, rest;
};

const std::vector<Model>& models() {
  static const std::vector<Model> all = {
      {"gpt", "data = \"text:t\"\ncontext = 6\nwidth = 8\nlayers = 2\nheads = 2\ntest_share = 0.1\n",
       "[algorithm]\nname = \"fedavg\"\nbatch = 5\nlocal_steps = 2\nlocal_step_size = 0.2\n"},
      {"char_mlp", "data = \"text:names\"\ncontext = 4\nwidth = 5\nhidden = [7, 6]\ntest_share = 0.1\n",
       "[algorithm]\nname = \"ef21\"\ncompressor = \"topk:k=5%\"\nstep_size = 0.5\n"},
      {"cnn", "data = \"digits\"\nfilters = [3]\nhidden = [9]\ntest_share = 0.5\n",
       "[algorithm]\nname = \"fedavg\"\nbatch = 7\nlocal_step_size = 0.2\n"},
      {"mlp", "data = \"digits\"\nhidden = [9, 5]\nactivation = \"gelu\"\ntest_share = 0.5\n",
       "[algorithm]\nname = \"diana\"\ncompressor = \"randk:k=20\"\nstep_size = 0.1\n"},
      {"mlp", "data = \"digits\"\nhidden = [9, 60]\ntest_share = 0.5\n",
       "[algorithm]\nname = \"dcgd\"\ncompressor = \"randk:k=200\"\npaths = 0.5\nbatch = 7\nstep_size = "
       "0.1\n"},
  };
  return all;
}

std::string model_config(const Model& model, const std::string& precision) {
  const std::string partition = model.name == "gpt" ? "iid" : "dirichlet";
  return "name = \"same\"\nprecision = \"" + precision + "\"\n[problem]\nkind = \"" + model.name + "\"\n" +
         model.problem + "[clients]\ncount = 4\npartition = \"" + partition + "\"\nweights = \"samples\"\n" +
         model.rest + "[run]\nrounds = 5\nevaluate_every = 2\n";
}

void write_texts(const TemporaryFolder& folder) {
  std::string text, names;
  for (int k = 0; k < 40; ++k) {
    text += "the " + std::string(1, static_cast<char>('a' + k * k % 26)) + "at sat on the mat. ";
    names += std::string(1, static_cast<char>('a' + k % 9)) +
             (k % 3 == 0   ? "nna"
              : k % 3 == 1 ? "bel"
                           : "lia") +
             "\n";
  }
  folder.write("t", text);
  folder.write("names", names);
}

TEST(ModelSameRun, OneThreadFourThreadsAndTheCodecGiveTheSameBits) {
  const TemporaryFolder folder;
  write_texts(folder);
  for (const Model& model : models()) {
    for (const char* precision : {"fp64", "fp32"}) {
      SCOPED_TRACE(model.name + " " + precision);
      const Prepared prepared =
          prepare(parse_experiment(model_config(model, precision), folder.path() / "same.toml"));
      const RunTrace one = trace(prepared, false, 1);
      EXPECT_TRUE(one.result.last.accuracy.has_value());
      EXPECT_FALSE(one.result.kernels.empty());
      EXPECT_NE(one.model, prepared.x0) << "nothing was learnt";
      EXPECT_EQ(one, trace(prepared, false, 4));
      // Only the codec compresses, so the bytes of its metrics are its own.
      const RunTrace encoded = trace(prepared, true, 1);
      EXPECT_EQ(one.model, encoded.model);
      EXPECT_EQ(encoded, trace(prepared, true, 4));
    }
  }
}

TEST(ModelSameRun, RealProcessesOverTcpGiveTheSameBits) {
  const TemporaryFolder folder;
  write_texts(folder);
  std::size_t number = 0;
  for (const Model& model : models()) {
    const std::string precision = number++ % 2 == 0 ? "fp32" : "fp64";
    SCOPED_TRACE(model.name + " " + precision);
    const std::string file = folder.write("same.toml", model_config(model, precision)).string();
    for (const char* transport : {"memory", "encoded", "tcp"}) {
      const auto run =
          run_gradwire(folder.path(), {"run", file, "--quiet", "--out", transport, "--transport", transport});
      ASSERT_EQ(run.code, 0) << run.err;
    }
    for (const char* name : {"model.bin", "config.toml"})
      EXPECT_EQ(read_file(folder.path() / "memory" / name), read_file(folder.path() / "tcp" / name)) << name;
    EXPECT_EQ(without_seconds(read_file(folder.path() / "encoded/metrics.csv")),
              without_seconds(read_file(folder.path() / "tcp/metrics.csv")));
    const auto kernels = [&](const std::string& run) {
      const std::string summary = read_file(folder.path() / run / "summary.json");
      const std::size_t at = summary.find("\"kernels\": \"");
      return at == std::string::npos ? "none" : summary.substr(at, summary.find('\n', at) - at);
    };
    EXPECT_EQ(kernels("memory"), kernels("tcp"));
    EXPECT_GT(kernels("memory").size(), 14u);
  }
}

// What a run learns, and its metrics but for seconds.
std::string outcome(const TemporaryFolder& folder, const std::string& run) {
  return read_file(folder.path() / run / "model.bin") +
         without_seconds(read_file(folder.path() / run / "metrics.csv"));
}

TEST(ModelSameRun, ABudgetForActivationsChangesNoBitInMemoryNorOverTcp) {
  const TemporaryFolder folder;
  write_texts(folder);
  std::size_t number = 0;
  for (const Model& model : models()) {
    SCOPED_TRACE(model.name);
    const std::string precision = number++ % 2 == 0 ? "fp64" : "fp32";
    const std::string file = folder.write("same.toml", model_config(model, precision)).string();
    const auto run = [&](const std::string& out, const std::string& transport, const std::string& budget) {
      return run_gradwire(folder.path(), {"run", file, "--quiet", "--out", out, "--transport", transport,
                                          "--set", "problem.activation_budget=" + budget});
    };
    const auto refused = run("small", "encoded", "1KB");
    ASSERT_EQ(refused.code, 2);
    const std::string start =
        "--set problem.activation_budget: activation_budget is too small for this model: the least is \"";
    const std::size_t at = refused.err.find(start);
    ASSERT_NE(at, std::string::npos) << refused.err;
    EXPECT_EQ(lines_of(refused.err).size(), 1u) << refused.err;
    const std::string least =
        refused.err.substr(at + start.size(), refused.err.rfind('"') - at - start.size());
    ASSERT_EQ(run("plain", "encoded", "none").code, 0);
    for (const std::string& budget : {std::string("sqrt"), least})
      for (const std::string transport : {"encoded", "tcp"}) {
        if (kSanitized && (budget == "sqrt") == (transport == "tcp")) continue;
        SCOPED_TRACE(budget + " " + transport);
        const auto result = run("fitted", transport, budget);
        ASSERT_EQ(result.code, 0) << result.err;
        EXPECT_EQ(outcome(folder, "fitted"), outcome(folder, "plain"));
        EXPECT_NE(read_file(folder.path() / "fitted/config.toml").find("activation_budget = \"" + budget),
                  std::string::npos);
        std::filesystem::remove_all(folder.path() / "fitted");
      }
    std::filesystem::remove_all(folder.path() / "plain");
  }
}

}  // namespace
}  // namespace gradwire
