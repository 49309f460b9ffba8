// A server and clients in a program do the run of train(), with the same bits.
#include <algorithm>
#include <cmath>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gradwire/random.h"
#include "tests/api/network/network_fixture.h"

namespace gradwire {
namespace {

struct OneRun {
  std::string name;
  KeyValues keys;
};

const std::vector<OneRun>& runs() {
  static const std::vector<OneRun> all = {
      {"gd", {{"algorithm.name", "gd"}, {"algorithm.step_size", 0.3}}},
      {"ef21",
       {{"algorithm.name", "ef21"}, {"algorithm.compressor", "topk:k=2"}, {"algorithm.step_size", 0.2}}},
      {"marina",
       {{"algorithm.name", "marina"},
        {"algorithm.compressor", "randk:k=3"},
        {"algorithm.step_size", 0.1},
        {"algorithm.p", 0.3}}},
      {"diana",
       {{"algorithm.name", "diana"},
        {"algorithm.compressor", "randk:k=3"},
        {"algorithm.step_size", 0.1},
        {"algorithm.alpha", 0.2}}},
      {"fedavg",
       {{"algorithm.name", "fedavg"},
        {"algorithm.batch", 2},
        {"algorithm.local_steps", 3},
        {"algorithm.local_step_size", 0.1},
        {"clients.participation", 0.5}}},
  };
  return all;
}

class EachRun : public ::testing::TestWithParam<std::size_t> {
 protected:
  template <class Real>
  void compare(const std::string& precision) {
    SCOPED_TRACE(precision);
    const Experiment experiment = custom(runs()[GetParam()].keys).with("precision", precision);
    std::vector<Rows<Real>> oracles = rows_of_all<Real>();
    const TrainResult here = train(oracles, experiment);
    const TemporaryFolder folder;
    std::vector<std::uint32_t> rows;
    Server server(experiment, {.state = folder.path() / "state", .on_row = [&](const MetricsRow& row) {
                                 rows.push_back(row.round);
                                 return true;
                               }});
    AllClients clients(server.address(), oracles);
    const TrainResult there = server.wait();
    clients.join();
    expect_same_run(here, there);
    EXPECT_EQ(there.trouble(), "");
    EXPECT_EQ(rows.size(), there.rows().size());
    EXPECT_EQ(here.resolved().toml(), there.resolved().toml());
  }
};

TEST_P(EachRun, HasTheBitsOfTrain) {
  compare<double>("fp64");
  compare<float>("fp32");
}

INSTANTIATE_TEST_SUITE_P(All, EachRun, ::testing::Range<std::size_t>(0, 5),
                         [](const auto& info) { return runs()[info.param].name; });

// Trains by steps of its own, along random samples.
class TrainingRows final : public Rows<double> {
 public:
  using Rows<double>::Rows;
  std::optional<double> train(std::span<double> y, const LocalTraining& training) override {
    RandomStream random(training.seed);
    std::vector<double> gradient(y.size());
    const double first = loss_and_gradient(y, {}, gradient);
    for (std::uint32_t k = 0; k < training.steps; ++k) {
      const auto sample = random.below(static_cast<std::uint32_t>(sample_count()));
      loss_and_gradient(y, Batch(&sample, 1), gradient);
      for (std::size_t j = 0; j < y.size(); ++j) y[j] -= training.step_size * gradient[j];
    }
    return first;
  }
};

TEST(Client, TrainsInItsOwnWayWithTheBitsOfTrain) {
  const Experiment experiment = custom(
      {{"algorithm.name", "fedavg"}, {"algorithm.local_steps", 4}, {"algorithm.local_step_size", 0.1}});
  std::vector<TrainingRows> oracles;
  for (std::uint32_t i = 0; i < kParts; ++i) oracles.emplace_back(i);
  std::vector<Rows<double>> others(oracles.begin(), oracles.end());
  const TrainResult here = train(oracles, experiment);
  const TrainResult without = train(others, experiment);
  EXPECT_FALSE(std::ranges::equal(here.model(), without.model()));
  const TemporaryFolder folder;
  Server server(experiment, {.state = folder.path() / "state"});
  std::deque<ClientThread> clients;
  for (std::uint32_t i = 0; i < kParts; ++i)
    clients.emplace_back(oracles[i], ClientOptions{.server = server.address(), .part = i, .parts = kParts});
  const TrainResult there = server.wait();
  for (ClientThread& client : clients) client.join();
  expect_same_run(here, there);
}

TEST(Client, MakesItsOracleOnceTheRunIsKnown) {
  std::vector<ClientRun> asked(kParts);
  for (const std::string precision : {"fp64", "fp32"}) {
    const Experiment experiment = custom(runs()[0].keys).with("precision", precision);
    const TemporaryFolder folder;
    Server server(experiment, {.state = folder.path()});
    const OracleFactory factory = {.fp64 =
                                       [&](const ClientRun& run) {
                                         asked[run.client] = run;
                                         return std::make_unique<Rows<double>>(run.client, run.dim);
                                       },
                                   .fp32 =
                                       [&](const ClientRun& run) {
                                         asked[run.client] = run;
                                         return std::make_unique<Rows<float>>(run.client, run.dim);
                                       }};
    std::deque<ClientThread> clients;
    for (std::uint32_t i = 0; i < kParts; ++i)
      clients.emplace_back(factory, ClientOptions{.server = server.address()});
    const TrainResult there = server.wait();
    for (ClientThread& client : clients) client.join();
    for (std::uint32_t i = 0; i < kParts; ++i) {
      EXPECT_EQ(asked[i].client, i);
      EXPECT_EQ(asked[i].clients, kParts);
      EXPECT_EQ(asked[i].dim, kDim);
    }
    std::vector<Rows<double>> oracles;
    for (std::uint32_t i = 0; i < kParts; ++i) oracles.emplace_back(i);
    if (precision == "fp64") expect_same_run(train(oracles, experiment), there);
  }
}

TEST(Client, ReadsDataLikeTheProgram) {
  const Experiment experiment = Experiment::parse(R"(
[problem]
kind = "logistic"
data = "synthetic"
samples = 40
dim = 6
[clients]
count = 4
[algorithm]
name = "ef21"
compressor = "topk:k=2"
step_size = 0.5
[run]
rounds = 20
)");
  const TemporaryFolder folder;
  Server server(experiment, {.state = folder.path()});
  std::deque<ClientThread> clients;
  const std::nullptr_t no_oracle = nullptr;
  for (std::uint32_t i = 0; i < kParts; ++i) {
    ClientOptions options = {.server = server.address(), .data = "synthetic"};
    if (i % 2 == 0) {
      options.data += "#" + std::to_string(i) + "/4";
    } else {
      options.part = i;
      options.parts = kParts;
    }
    clients.emplace_back(no_oracle, options);
  }
  expect_same_run(train(experiment), server.wait());
  for (ClientThread& client : clients) client.join();
}

TEST(Client, TrainsOnSamplesInMemory) {
  constexpr std::size_t kColumns = 5, kRowsOfClient = 12;
  std::vector<double> features, labels;
  for (std::size_t r = 0; r < kParts * kRowsOfClient; ++r) {
    double sum = 0;
    for (std::size_t j = 0; j < kColumns; ++j)
      sum += features.emplace_back((r * 5 + j * 3) % 4 == 0 ? 0
                                                            : std::sin(double(r * kColumns + j)) + double(j));
    labels.push_back(sum > 10 ? 1 : -1);
  }
  for (const char* normalize : {"none", "standard", "unit_rows"}) {
    const Experiment experiment = Experiment::from({{"problem.kind", "logistic"},
                                                    {"problem.data", "given"},
                                                    {"problem.normalize", normalize},
                                                    {"clients.count", kParts},
                                                    {"algorithm.name", "ef21"},
                                                    {"algorithm.compressor", "topk:k=2"},
                                                    {"algorithm.step_size", 0.1},
                                                    {"run.rounds", 20}});
    const TemporaryFolder folder;
    Server server(experiment, {.state = folder.path()});
    std::deque<Data> parts;
    std::deque<ClientThread> clients;
    for (std::uint32_t i = 0; i < kParts; ++i) {
      const auto row = static_cast<std::ptrdiff_t>(i * kRowsOfClient),
                 end = row + std::ptrdiff_t(kRowsOfClient);
      const auto columns = static_cast<std::ptrdiff_t>(kColumns);
      parts.push_back(Data::dense(kColumns,
                                  {features.begin() + row * columns, features.begin() + end * columns},
                                  {labels.begin() + row, labels.begin() + end}));
      clients.emplace_back(parts.back(),
                           ClientOptions{.server = server.address(), .part = i, .parts = kParts});
    }
    const TrainResult there = server.wait();
    for (ClientThread& client : clients) client.join();
    SCOPED_TRACE(normalize);
    expect_same_run(train(experiment, {.data = Data::dense(kColumns, features, labels)}), there);
  }
}

TEST(Client, WithSamplesInMemoryNamesNoSource) {
  const Data data = Data::dense(1, {1}, {1});
  ClientThread client(data, {.server = "127.0.0.1:1", .data = "digits"});
  EXPECT_EQ(client.refusal(), "--data 'digits': a client with samples in memory reads no data; leave it out");
}

TEST(Client, TrainsOnTextsInMemory) {
  const char* const lines[] = {"0.5,1,-1\n", "-1,0,1\n", "2,0.25,1\n", "1,-3,-1\n"};
  const Experiment experiment = Experiment::from({{"problem.kind", "logistic"},
                                                  {"problem.data", "given"},
                                                  {"problem.label", "3"},
                                                  {"clients.count", kParts},
                                                  {"algorithm.name", "gd"},
                                                  {"algorithm.step_size", 0.1},
                                                  {"run.rounds", 20}});
  const TemporaryFolder folder;
  Server server(experiment, {.state = folder.path()});
  std::deque<Data> texts;
  std::deque<ClientThread> clients;
  std::string all;
  for (std::uint32_t i = 0; i < kParts; ++i) {
    texts.push_back(Data::text(lines[i]));
    all += lines[i];
    clients.emplace_back(texts.back(), ClientOptions{.server = server.address(), .part = i, .parts = kParts});
  }
  const TrainResult there = server.wait();
  for (ClientThread& client : clients) client.join();
  expect_same_run(train(experiment, {.data = Data::text(all)}), there);
}

TEST(Server, SaysWhatItHasSoFar) {
  const TemporaryFolder folder;
  std::vector<Rows<double>> oracles = rows_of_all<double>();
  const Experiment experiment = custom(runs()[1].keys);
  Server* running = nullptr;
  std::atomic<bool> is_ready = false;
  std::vector<std::uint32_t> rounds;
  const auto look = [&](const MetricsRow& row) {
    while (!is_ready) std::this_thread::yield();
    const TrainResult now = running->result();
    EXPECT_EQ(now.outcome(), "running");
    EXPECT_TRUE(now.model().empty());
    rounds.push_back(row.round - now.rounds());  // the row may not be in the file yet
    return true;
  };
  Server server(experiment, {.state = folder.path(), .on_row = look});
  running = &server;
  EXPECT_TRUE(server.result().rows().empty());
  is_ready = true;
  AllClients clients(server.address(), oracles);
  const TrainResult result = server.wait();
  clients.join();
  EXPECT_EQ(rounds.size(), result.rows().size());
  EXPECT_LE(std::ranges::max(rounds), 1u);
  expect_same_run(server.result(), result);
}

TEST(Server, SharesAProcessWithAnotherServer) {
  std::vector<Rows<double>> a = rows_of_all<double>();
  std::vector<Rows<float>> b = rows_of_all<float>();
  const Experiment wide = custom(runs()[1].keys), narrow = custom(runs()[3].keys).with("precision", "fp32");
  const TemporaryFolder folder;
  Server first(wide, {.state = folder.path() / "a"}), second(narrow, {.state = folder.path() / "b"});
  EXPECT_NE(first.address(), second.address());
  AllClients of_first(first.address(), a), of_second(second.address(), b);
  const TrainResult in_first = first.wait(), in_second = second.wait();
  of_first.join();
  of_second.join();
  expect_same_run(train(a, wide), in_first);
  expect_same_run(train(b, narrow), in_second);
}

TEST(Server, ReturnsTheResultOfItsFolderOnceTheRunIsOver) {
  const Experiment experiment = custom(runs()[1].keys);
  std::vector<Rows<double>> oracles = rows_of_all<double>();
  const TemporaryFolder folder;
  const ServerOptions options = {.state = folder.path() / "state"};
  std::string summary;
  {
    Server server(experiment, options);
    AllClients clients(server.address(), oracles);
    summary = server.wait().summary();
    clients.join();
  }
  EXPECT_NE(summary.find("\"transport\": \"tcp\""), std::string::npos) << summary;
  Server again(experiment, options);
  EXPECT_EQ(again.address(), "");
  const TrainResult result = again.wait();
  expect_same_run(train(oracles, experiment), result);
  EXPECT_EQ(result.summary(), summary);
  result.save(folder.path() / "saved");
  for (const char* file : {"config.toml", "model.bin", "summary.json"})
    EXPECT_EQ(read_file(folder.path() / "saved" / file), read_file(folder.path() / "state" / file)) << file;
}

TEST(Server, EndsAtARowThatTheObserverRefuses) {
  std::vector<Rows<double>> oracles = rows_of_all<double>();
  const TemporaryFolder folder;
  Server server(custom(runs()[0].keys),
                {.state = folder.path(), .on_row = [](const MetricsRow& row) { return row.round < 7; }});
  AllClients clients(server.address(), oracles);
  const TrainResult result = server.wait();
  clients.join();
  EXPECT_EQ(result.outcome(), "reached_target");
  EXPECT_EQ(result.rounds(), 7u);
}

TEST(Server, ReturnsARunThatDiverges) {
  std::vector<Rows<double>> oracles = rows_of_all<double>();
  const TemporaryFolder folder;
  Server server(custom({{"algorithm.name", "gd"}, {"algorithm.step_size", 1e9}, {"run.rounds", 400}}),
                {.state = folder.path()});
  AllClients clients(server.address(), oracles);
  const TrainResult result = server.wait();
  EXPECT_EQ(result.outcome(), "diverged");
  EXPECT_NE(result.trouble().find("diverged at round"), std::string::npos) << result.trouble();
  clients.join();
}

}  // namespace
}  // namespace gradwire
