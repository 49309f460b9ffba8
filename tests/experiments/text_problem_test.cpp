// Problems on text, from the experiment to the clients: shards, schema and scores, in memory and with
// processes that have their own texts.
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "config/experiment_file.h"
#include "samples/local_problem.h"
#include "simulation/prepare.h"
#include "tests/support/data_files.h"
#include "tests/support/process.h"

namespace gradwire {
namespace {

const std::string kText =
    "to be, or not to be: that is the question:\nwhether 'tis nobler in the mind to suffer\n"
    "the slings and arrows of outrageous fortune,\nor to take arms against a sea of troubles\n";
const std::string kPlay =
    "Ann:\nto be, or not to be:\nthat is the question\n\nBob:\nwhether 'tis nobler in the mind\n\nCy:\n"
    "to suffer the slings\n\nBob:\nand arrows\n\nMute:\n\nDee:\nof\n";
const std::string kNames = "emma\nolivia\nava\nisabella\nsophia\ncharlotte\nmia\namelia\nharper\nevelyn\n";

std::string text_config(const std::string& kind, const std::string& clients,
                        const std::string& problem = "") {
  const std::string shape = kind == "gpt" ? "context = 5\nwidth = 6\nlayers = 1\nheads = 2\n"
                                          : "context = 4\nwidth = 3\nhidden = [5]\n";
  return "name = \"text\"\n[problem]\nkind = \"" + kind + "\"\ndata = \"text:t\"\n" + shape + problem +
         "[clients]\n" + clients +
         "[algorithm]\nname = \"fedavg\"\nbatch = 4\nlocal_step_size = 0.1\n[run]\nrounds = 4\n";
}
ExperimentSpec experiment(const std::string& kind, const std::string& clients,
                          const std::string& problem = "") {
  return parse_experiment(text_config(kind, clients, problem), "t.toml").experiment;
}

std::size_t context_of(const ProblemSpec& spec) { return text_reading(spec.problem)->context; }

bool equal(const Windows& a, const Windows& b) {
  if (a.size() != b.size() || a.alphabet() != b.alphabet()) return false;
  for (std::size_t s = 0; s < a.size(); ++s)
    if (!std::ranges::equal(a.tokens(s), b.tokens(s)) || !std::ranges::equal(a.labels(s), b.labels(s)))
      return false;
  return true;
}

TEST(TextProblem, GivesPartIOfNTheDataOfClientIInASimulation) {
  const TemporaryFolder folder;
  for (const std::string kind : {"gpt", "char_mlp"}) {
    for (const std::string partition : {"contiguous", "iid", "by_label", "dirichlet", "by_role"}) {
      const bool by_speaker = partition == "by_role";
      folder.write("t", by_speaker ? kPlay : kind == "gpt" ? kText : kNames);
      folder.write("more", std::string(by_speaker ? "Xi:\n" : "") + "zed\nquux\nxi\nyo\n");
      if (kind == "gpt" && (partition == "by_label" || partition == "dirichlet")) continue;
      for (const std::string test : {"", "test_share = 0.2\n", "test = \"text:more\"\n"}) {
        SCOPED_TRACE(kind + " " + partition + " " + test);
        const auto e = experiment(kind, "count = 3\npartition = \"" + partition + "\"\n", test);
        const std::vector<ClientDataset> parts = load_samples(e, folder.path()).all_parts();
        ASSERT_EQ(parts.size(), 3u);
        for (std::uint32_t i = 0; i < 3; ++i) {
          const ClientDataset own =
              load_part(e, {"text:t", PartNumber{i, 3}, sources_of(e.problem)->test}, folder.path());
          EXPECT_TRUE(equal(own.train_text, parts[i].train_text));
          EXPECT_TRUE(equal(own.test_text, parts[i].test_text));
          EXPECT_GT(own.train_count(), 0u);
          EXPECT_EQ(own.test_count() > 0, !test.empty());
          EXPECT_EQ(parts[i].train_text.letters, parts[0].train_text.letters) << "shared";
        }
      }
    }
  }
}

TEST(TextProblem, GivesAClientItsWholeFileExceptTheTestShare) {
  const TemporaryFolder folder;
  folder.write("own", "abcdefghijklmnopqrstuvwxy");
  const auto e = experiment("gpt", "count = 5\n", "test_share = 0.2\n");
  const ClientDataset part = load_part(e, {"text:own", std::nullopt}, folder.path());
  EXPECT_EQ(part.test_count(), 4u);            // of 20 windows
  EXPECT_EQ(part.train_count(), 20u - 4 - 5);  // those that share letters with the test are dropped
  const ClientDataset bare = load_part(e, {"own", std::nullopt}, folder.path());
  EXPECT_TRUE(equal(bare.train_text, part.train_text)) << "a bare path is of the kind of problem.data";
}

TEST(TextProblem, HasTheAlphabetOfAllClientsAsSchema) {
  std::vector<ClientDataset> parts(3);
  parts[0].train_text = running_text("banana", "a", 2);
  parts[1].train_text = running_text("cocoa!", "b", 2);
  parts[1].test_text = running_text("zebra", "c", 2);
  ProblemSpec spec;
  spec.problem = Gpt{};
  const DataSchema schema = schema_of(parts, spec);
  EXPECT_EQ(schema.alphabet, "!abcenorz");
  EXPECT_EQ(schema.columns, 0u);
  EXPECT_TRUE(schema.labels.empty());
}

TEST(TextProblem, DoesNotDependOnHowTheTextIsSplit) {
  const TemporaryFolder folder;
  folder.write("t", kText + "Q");  // a letter that only the last sample has
  for (const char* count : {"count = 1\n", "count = 4\n", "count = 7\n"})
    EXPECT_EQ(prepare(parse_experiment(text_config("gpt", count), folder.path() / "t.toml")).d,
              prepare(parse_experiment(text_config("gpt", "count = 2\n"), folder.path() / "t.toml")).d);
}

// The same text gives the same loss, whether a client numbers its letters by its own alphabet or a larger
// one.
TEST(TextProblem, NumbersLettersEquallyForClientsWithOtherAlphabets) {
  for (const std::string kind : {"gpt", "char_mlp"}) {
    const ProblemSpec spec = problem_spec(experiment(kind, "count = 2\n"));
    const auto read = [&](const std::string& text) {
      return kind == "gpt" ? running_text(text, "t", context_of(spec))
                           : list_of_names(text, "t", context_of(spec));
    };
    ClientDataset own, wide;
    own.train_text = own.test_text = read("mnmnomonmnmo\nnomnom");
    wide.train_text = wide.test_text = with_alphabet(own.train_text, "\nabcmnoxyz");
    const DataSchema schema{.alphabet = "\nabcmnoxyz"};
    const std::vector<double> x = model_start(spec, schema);
    std::vector<double> g1(x.size()), g2(x.size());
    const auto a = make_oracle<double>(spec, schema, own, 0), b = make_oracle<double>(spec, schema, wide, 1);
    EXPECT_EQ(a->loss_and_gradient(x, {}, g1), b->loss_and_gradient(x, {}, g2));
    EXPECT_EQ(g1, g2);
    EXPECT_EQ(a->score(x)->correct, b->score(x)->correct);
    EXPECT_THROW(make_oracle<double>(spec, {.alphabet = "\nmn"}, own, 0), DataError);
  }
}

// With all weights 0 but the head's bias, the model predicts the letter with the largest bias at every
// position.
TEST(TextProblem, ScoresAllPositions) {
  const ProblemSpec spec = problem_spec(experiment("gpt", "count = 1\n"));
  ClientDataset part;
  part.train_text = part.test_text = running_text("aabababaab", "t", context_of(spec));  // windows of 5
  const DataSchema schema{.alphabet = "ab"};
  std::vector<double> x(model_dim(spec, schema));
  const auto oracle = make_oracle<double>(spec, schema, part, 0);
  const auto tested = part.test_text.size() * context_of(spec);
  x.back() = 1;  // 'b'
  std::size_t letters_b = 0;
  for (std::size_t s = 0; s < part.test_text.size(); ++s)
    for (const std::uint16_t label : part.test_text.labels(s)) letters_b += label;
  EXPECT_EQ(oracle->score(x)->tested, tested);
  EXPECT_EQ(oracle->score(x)->correct, letters_b);
  x.back() = -1;
  EXPECT_EQ(oracle->score(x)->correct, tested - letters_b);
  // The loss of constant logits (0, z) after tanh.
  std::vector<double> gradient(x.size());
  x.back() = 1;
  const double z = std::tanh(1.0), share = static_cast<double>(letters_b) / static_cast<double>(tested);
  EXPECT_NEAR(oracle->loss_and_gradient(x, {}, gradient), std::log(1 + std::exp(z)) - share * z, 1e-12);
}

TEST(TextProblem, ReportsFaultsOfTheText) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& kind, const std::string& text) {
    folder.write("t", text);
    return data_error([&] { load_samples(experiment(kind, "count = 2\n"), folder.path()); });
  };
  const std::string file = (folder.path() / "t").string();
  EXPECT_EQ(error("gpt", "abcde"),
            file + ": holds 5 letters, but problem.context = 5 needs 6 or more; lower problem.context");
  EXPECT_EQ(error("gpt", "abcdef"),
            "more clients than samples: 2 clients, 1 training samples; lower clients.count, or set "
            "clients.samples_per_client");
  EXPECT_EQ(error("char_mlp", "\n\n"), file + ": holds no names; write one name per line");
}

// ---- processes ----

class TextProcesses : public ::testing::Test {
 protected:
  std::filesystem::path state() const { return folder.path() / "state"; }
  Process start_server(const std::string& text) {
    folder.write("run.toml", text);
    Process server("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "state"},
                   folder.path() / "server.log");
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(state() / "address"); })) << server.log();
    std::ifstream(state() / "address") >> address;
    return server;
  }
  Process start_client(int number, const std::string& data) {
    return Process("gradwire-client", {"--server", address, "--data", data},
                   folder.path() / ("client" + std::to_string(number) + ".log"));
  }

  TemporaryFolder folder;
  std::string address;
};

TEST_F(TextProcesses, BringTextsOfTheirOwnAndAgreeOnTheLetters) {
  folder.write("one", "banana banana banana");
  folder.write("two", "cocoa cocoa cocoa!");
  for (const std::string kind : {"gpt", "char_mlp"}) {
    std::filesystem::remove_all(state());
    Process server = start_server(text_config(kind, "count = 2\n"));
    Process one = start_client(1, "text:one"), two = start_client(2, "two");
    EXPECT_EQ(server.wait(), 0) << server.log();
    EXPECT_EQ(one.wait(), 0) << one.log();
    EXPECT_EQ(two.wait(), 0) << two.log();
    const ProblemSpec spec = problem_spec(experiment(kind, "count = 2\n"));
    const std::size_t d = model_dim(spec, {.alphabet = " !abcno"});
    EXPECT_NE(read_file(state() / "summary.json").find("\"d\": " + std::to_string(d)), std::string::npos)
        << read_file(state() / "summary.json");
  }
}

TEST_F(TextProcesses, AreToldWhenTheirTextIsTooShort) {
  folder.write("short", "abc");
  Process server = start_server(text_config("gpt", "count = 1\n"));
  Process client = start_client(1, "text:short");
  EXPECT_EQ(client.wait(), 2);
  EXPECT_NE(client.log().find("needs 6 or more"), std::string::npos) << client.log();
  EXPECT_TRUE(eventually([&] { return server.log().find("its own log says why") != std::string::npos; }))
      << server.log();
}

// Clients may use the kernels of another processor. The server warns of it.
TEST_F(TextProcesses, AreNamedInOneWarningIfTheyUseOtherKernels) {
  folder.write("t", kText);
  for (const char* kernels : {"portable", ""}) {
    std::filesystem::remove_all(state());
    std::filesystem::remove(folder.path() / "server.log");
    Process server = start_server(text_config("gpt", "count = 3\n"));
    std::vector<Process> clients;
    for (int k = 0; k < 3; ++k) {
      const ScopedEnvironment set("GRADWIRE_KERNELS", k == 1 && *kernels != '\0' ? kernels : nullptr);
      clients.push_back(start_client(k, "text:t#" + std::to_string(k) + "/3"));
      EXPECT_TRUE(eventually(
          [&] { return server.log().find("client " + std::to_string(k) + " '") != std::string::npos; }));
    }
    EXPECT_EQ(server.wait(), 0) << server.log();
    const bool differ = read_file(state() / "summary.json").find(" and ") != std::string::npos;
    std::size_t warnings = 0;
    for (const std::string& line : lines_of(server.log()))
      warnings += line.find("with kernels") != std::string::npos;
    EXPECT_EQ(warnings, differ ? 1u : 0u) << server.log();
    EXPECT_FALSE(differ && *kernels == '\0');
  }
}

}  // namespace
}  // namespace gradwire
