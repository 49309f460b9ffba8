// Algorithms and compressors of a program.
#include <atomic>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <stop_token>
#include <string>
#include <vector>

#include "gradwire/train.h"
#include "tests/api/api_support.h"
#include "tests/api/distances.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

// EF21 (arXiv:2106.05203, Algorithm 2) as a program would write it.
template <class Real>
struct MyEf21 : UserAlgorithm<Real> {
  AlgorithmState<Real> client_start(std::span<const Real> x0) const override {
    return {std::vector<Real>(x0.size())};  // g_i
  }
  AlgorithmState<Real> server_start(std::span<const Real> x0) const override {
    return {std::vector<Real>(x0.size())};  // g
  }
  Message<Real> client(ClientRound<Real>& round, std::span<const Real> x,
                       AlgorithmState<Real>& state) const override {
    std::vector<Real> v = round.gradient(x);
    for (std::size_t j = 0; j < v.size(); ++j) v[j] -= state[0][j];
    const auto c_i = round.first() ? Compressed<Real>::whole(v) : round.compress(v);
    c_i.add_to(state[0]);
    return {c_i};
  }
  void server(ServerRound<Real>& round, std::vector<Real>& x, AlgorithmState<Real>& state) const override {
    round.add_sum(state[0]);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] -= Real(round.step_size()) * state[0][j];
  }
  bool asks_all(std::uint32_t t) const override { return t == 0; }
};

struct Both : MyEf21<double>, MyEf21<float> {
  std::string name() const override { return "my ef21"; }
};

Experiment quadratics(const char* precision, const char* compressor) {
  return Experiment::from({{"problem.kind", "quadratic"},
                           {"problem.dim", 30},
                           {"clients.count", 7},
                           {"precision", precision},
                           {"algorithm.name", "ef21"},
                           {"algorithm.compressor", compressor},
                           {"algorithm.step_size", 0.02},
                           {"run.rounds", 60}});
}

TEST(UserAlgorithm, HasTheBitsOfTheAlgorithmOfTheLibrary) {
  for (const char* precision : {"fp64", "fp32"})
    for (const char* compressor : {"topk:k=2", "randk:k=3"})
      for (const char* transport : {"memory", "encoded"})
        for (const unsigned threads : {1u, 3u}) {
          SCOPED_TRACE(std::string(precision) + " " + compressor + " " + transport);
          // randk is contractive once it is scaled.
          const std::string spec =
              compressor[0] == 'r' ? "scaled(" + std::string(compressor) + ")" : compressor;
          const Experiment experiment = quadratics(precision, spec.c_str());
          const TrainOptions plain{.threads = threads, .transport = transport};
          const TrainResult theirs = train(experiment, plain);
          TrainOptions options = plain;
          options.algorithm = Both();
          const TrainResult mine = train(experiment, options);
          EXPECT_EQ(model_of(mine), model_of(theirs));
          for (const char* column : {"loss", "bits_up", "bits_up_paper", "bytes_up", "grad_calls"})
            EXPECT_EQ(mine.metrics(column), theirs.metrics(column)) << column;
          EXPECT_EQ(mine.experiment().get("algorithm.name"), "custom");
        }
}

TEST(UserAlgorithm, ResumesAStoppedRun) {
  const TemporaryFolder folder;
  const Experiment experiment = quadratics("fp64", "topk:k=2");
  std::stop_source stop;
  const TrainOptions half{.algorithm = Both(),
                          .on_row =
                              [&](const MetricsRow& row) {
                                if (row.round == 20) stop.request_stop();
                                return true;
                              },
                          .stop = stop.get_token(),
                          .out = folder.path() / "run"};
  EXPECT_EQ(train(experiment, half).outcome(), "stopped");
  const TrainResult whole = train(experiment, {.algorithm = Both(), .out = folder.path() / "run"});
  EXPECT_EQ(whole.outcome(), "finished");
  EXPECT_EQ(model_of(whole), model_of(train(experiment)));
}

TEST(UserAlgorithm, SavesWhatItRan) {
  const TemporaryFolder folder;
  const TrainResult result = train(quadratics("fp64", "topk:k=2"), {.algorithm = Both()});
  result.save(folder.path() / "run");
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "run" / "model.bin"));
  EXPECT_EQ(result.resolved().get("algorithm.name"), "custom");
  // The files alone cannot be run again.
  const std::string error = error_of([&] { train(Experiment::load(folder.path() / "run" / "config.toml")); });
  EXPECT_NE(error.find("'custom' needs a program that brings the algorithm"), std::string::npos) << error;
}

TEST(UserAlgorithm, KeepsNoStateOfAReplyThatIsLost) {
  // With faults, the state of a lost reply must not count: the run has the bits of EF21 with the same faults.
  const Experiment experiment =
      quadratics("fp64", "topk:k=2").with({{"faults.lost_replies", 0.3}, {"faults.duplicates", 0.1}});
  EXPECT_EQ(model_of(train(experiment, {.algorithm = Both()})), model_of(train(experiment)));
}

TEST(UserAlgorithm, IsMissingInOneLine) {
  const Experiment experiment = quadratics("fp32", "topk:k=2").with("algorithm.name", "custom");
  const std::string error = error_of([&] { train(experiment); });
  EXPECT_NE(error.find("'custom' needs a program that brings the algorithm, in the precision fp32"),
            std::string::npos)
      << error;
  const std::string other = error_of([&] { train(experiment, {.algorithm = MyEf21<double>()}); });
  EXPECT_EQ(other, error);
}

TEST(UserAlgorithm, NeedsANumberAsStep) {
  const std::string error = error_of([] {
    train(quadratics("fp64", "topk:k=2").with("algorithm.step_size", "theory"), {.algorithm = Both()});
  });
  EXPECT_NE(error.find("gradwire knows no theory of 'custom'; give a number"), std::string::npos) << error;
}

struct WrongMessage : MyEf21<double> {
  enum What { kLength, kCount, kState, kModel, kPart, kPoint, kPartOfFour } what;
  explicit WrongMessage(What w) : what(w) {}
  Message<double> client(ClientRound<double>& round, std::span<const double> x,
                         AlgorithmState<double>& state) const override {
    if (what == kLength) return {Compressed<double>::whole({1, 2})};
    if (what == kCount) return Message<double>(5, Compressed<double>::whole(round.gradient(x)));
    if (what == kState) state.clear();
    if (what == kPoint) round.gradient(std::vector<double>{1});
    if (what == kPartOfFour) round.compress(x, 4);
    return {Compressed<double>::whole(round.gradient(x))};
  }
  void server(ServerRound<double>& round, std::vector<double>& x, AlgorithmState<double>&) const override {
    if (what == kModel) x.push_back(1);
    if (what == kPart) round.add_mean(x, -0.1, 1);
  }
};

TEST(UserAlgorithm, IsToldOfMessagesThatDoNotFit) {
  const auto error = [](WrongMessage::What what) {
    return error_of(
        [&] { train(quadratics("fp64", "identity"), {.algorithm = WrongMessage(what), .threads = 1}); });
  };
  EXPECT_EQ(error(WrongMessage::kLength), "a vector of a message has length 2, not 30");
  EXPECT_EQ(error(WrongMessage::kCount), "a message has 5 vectors, but at most 4 fit in");
  EXPECT_EQ(error(WrongMessage::kState), "the state of client 0 has 0 vectors, and client_start() made 1");
  EXPECT_EQ(error(WrongMessage::kModel), "the algorithm made a model of length 31, not 30");
  EXPECT_EQ(error(WrongMessage::kPart), "add_mean() of part 1, but the reply of client 0 has 1 parts");
  EXPECT_EQ(error(WrongMessage::kPoint), "gradient() needs a vector of length 30, not 1");
  EXPECT_EQ(error(WrongMessage::kPartOfFour), "compress() for part 4, but a message has at most 4 parts");
}

TEST(UserAlgorithm, HasTheBitsOfTheLibraryIfSomeClientsDoNotReply) {
  for (const KeyValues& keys :
       {KeyValues{{"clients.participation", 0.5}}, KeyValues{{"clients.participation", 0.3}}})
    for (const char* precision : {"fp64", "fp32"}) {
      const Experiment experiment = quadratics(precision, "topk:k=2").with(keys);
      const TrainResult mine = train(experiment, {.algorithm = Both()}), theirs = train(experiment);
      EXPECT_EQ(model_of(mine), model_of(theirs)) << precision;
      EXPECT_EQ(mine.metrics("bits_up"), theirs.metrics("bits_up"));
    }
}

struct Renamed : Both {
  std::string name() const override { return "renamed"; }
};

TEST(UserAlgorithm, ResumesOnlyUnderItsName) {
  const TemporaryFolder folder;
  const Experiment experiment = quadratics("fp64", "topk:k=2");
  std::stop_source stop;
  const auto stop_at_20 = [&](const MetricsRow& row) {
    if (row.round == 20) stop.request_stop();
    return true;
  };
  train(experiment,
        {.algorithm = Both(), .on_row = stop_at_20, .stop = stop.get_token(), .out = folder.path() / "run"});
  const std::string error =
      error_of([&] { train(experiment, {.algorithm = Renamed(), .out = folder.path() / "run"}); });
  EXPECT_NE(error.find("another algorithm"), std::string::npos) << error;
}

// Counts the replies of each round and stores them in the model.
struct CountsReplies : UserAlgorithm<double> {
  Message<double> client(ClientRound<double>& round, std::span<const double>,
                         AlgorithmState<double>&) const override {
    std::vector<double> v(30, round.client());
    return {Compressed<double>::whole(v), Compressed<double>::entries(30, {3}, {round.round() + 1.0})};
  }
  void server(ServerRound<double>& round, std::vector<double>& x, AlgorithmState<double>&) const override {
    const auto replied = round.replied();
    x[0] += static_cast<double>(replied.size());
    for (std::size_t k = 0; k < replied.size(); ++k) {
      const Message<double> message = round.reply(k);
      if (message[0].to_vector()[5] == replied[k]) x[1] += 1;
      x[2] += message[1].to_vector()[3];
    }
  }
  bool asks_all(std::uint32_t t) const override { return t == 0; }
};

TEST(UserAlgorithm, SeesTheRepliesOfTheClientsThatWereAsked) {
  const TrainResult result =
      train(quadratics("fp64", "identity").with({{"clients.participation", 0.3}, {"run.rounds", 3}}),
            {.algorithm = CountsReplies()});
  // All 7 clients in round 0, then 2 in each of two rounds.
  EXPECT_EQ(result.model()[0], 11);
  EXPECT_EQ(result.model()[1], 11);
  EXPECT_EQ(result.model()[2], 7 * 1 + 2 * 2 + 2 * 3);
}

// Gradient descent that asks two clients, and sends them the double of x and a counter.
struct Doubled : UserAlgorithm<double> {
  AlgorithmState<double> server_start(std::span<const double>) const override { return {{0}}; }
  std::optional<std::vector<std::uint32_t>> cohort(const ServerRound<double>& round) const override {
    EXPECT_TRUE(round.replied().empty());
    const std::uint32_t other = (round.round() + 3) % round.clients();
    return other == 1 ? std::vector<std::uint32_t>{1} : std::vector<std::uint32_t>{other, 1};
  }
  Message<double> broadcast(const ServerRound<double>& round, std::span<const double> x,
                            const AlgorithmState<double>& state) const override {
    EXPECT_EQ(state[0][0], round.round());
    std::vector<double> twice(x.begin(), x.end());
    for (double& value : twice) value *= 2;
    return {Compressed<double>::whole(twice), Compressed<double>::entries(30, {4}, {state[0][0]})};
  }
  Message<double> client(ClientRound<double>& round, std::span<const double> x,
                         AlgorithmState<double>&) const override {
    const Message<double> received = round.received();
    EXPECT_EQ(received.size(), 2u);
    EXPECT_EQ(received[0].to_vector(), std::vector<double>(x.begin(), x.end()));
    EXPECT_EQ(received[1].to_vector()[4], round.round());
    std::vector<double> half(x.begin(), x.end());
    for (double& value : half) value /= 2;
    return {Compressed<double>::whole(round.gradient(half))};
  }
  void server(ServerRound<double>& round, std::vector<double>& x,
              AlgorithmState<double>& state) const override {
    const std::uint32_t other = (round.round() + 3) % round.clients();
    EXPECT_EQ(round.replied(), other == 1   ? std::vector<std::uint32_t>{1}
                               : other == 0 ? (std::vector<std::uint32_t>{0, 1})
                                            : (std::vector<std::uint32_t>{1, other}));
    round.add_mean(x, -round.step_size());
    state[0][0] += 1;
  }
};

TEST(UserAlgorithm, ChoosesItsClientsAndWhatTheyGet) {
  const Experiment experiment = quadratics("fp64", "identity").with("run.rounds", 4);
  const TrainResult memory = train(experiment, {.algorithm = Doubled()});
  const TrainResult encoded = train(experiment, {.algorithm = Doubled(), .transport = "encoded"});
  EXPECT_EQ(model_of(memory), model_of(encoded));
  // Rounds 0 to 3 ask the clients {1, 3}, {1, 4}, {1, 5} and {1, 6}, of 7. An index takes 5 bits.
  EXPECT_DOUBLE_EQ(memory.rows().back().bits_up, 8 * 30 * 64 / 7.0);
  EXPECT_DOUBLE_EQ(memory.rows().back().bits_down, 8 * (30 * 64 + 64 + 5) / 7.0);
  EXPECT_EQ(memory.rows().back().bytes_down, encoded.rows().back().bytes_down);
  EXPECT_LT(memory.rows().back().loss, memory.rows().front().loss);
}

TEST(UserAlgorithm, ResumesWithItsBroadcast) {
  const TemporaryFolder folder;
  const Experiment experiment = quadratics("fp64", "identity");
  std::stop_source stop;
  const auto stop_at_20 = [&](const MetricsRow& row) {
    if (row.round == 20) stop.request_stop();
    return true;
  };
  const auto out = folder.path() / "run";
  train(experiment, {.algorithm = Doubled(), .on_row = stop_at_20, .stop = stop.get_token(), .out = out});
  EXPECT_EQ(model_of(train(experiment, {.algorithm = Doubled(), .out = out})),
            model_of(train(experiment, {.algorithm = Doubled()})));
}

struct WrongCohort : MyEf21<double> {
  std::vector<std::uint32_t> chosen;
  explicit WrongCohort(std::vector<std::uint32_t> c) : chosen(std::move(c)) {}
  bool asks_all(std::uint32_t) const override { return false; }
  std::optional<std::vector<std::uint32_t>> cohort(const ServerRound<double>&) const override {
    return chosen;
  }
};

TEST(UserAlgorithm, IsToldOfCohortsThatDoNotFit) {
  for (const std::vector<std::uint32_t>& chosen : {std::vector<std::uint32_t>{2, 1, 2}, {0, 7}})
    EXPECT_EQ(error_of([&] { train(quadratics("fp64", "topk:k=2"), {.algorithm = WrongCohort(chosen)}); }),
              "cohort() must return different clients below 7");
}

// Sends k entries from a random place on, scaled so that the mean is the vector: RandSeqK without
// wrap-around.
template <class Real>
struct RandomBlock : UserCompressor<Real> {
  std::uint32_t blocks = 3;
  bool is_drawn = true;

  std::string name() const override { return "random_block"; }
  CompressorConstants constants(std::size_t d) const override {
    return CompressorConstants::of_unbiased(blocks - 1, static_cast<double>(d) / blocks);
  }
  std::vector<std::uint32_t> block(std::size_t d, RandomStream& random) const {
    const auto length = static_cast<std::uint32_t>(d / blocks);
    std::vector<std::uint32_t> indices(length);
    const std::uint32_t first = random.below(blocks) * length;
    for (std::uint32_t j = 0; j < length; ++j) indices[j] = first + j;
    return indices;
  }
  Compressed<Real> compress(std::span<const Real> v, RandomStream& random) const override {
    const std::vector<std::uint32_t> indices = block(v.size(), random);
    std::vector<Real> values;
    for (const std::uint32_t j : indices) values.push_back(Real(blocks) * v[j]);
    return Compressed<Real>::entries(v.size(), indices, values);
  }
  std::optional<std::vector<std::uint32_t>> drawn_indices(std::size_t d,
                                                          RandomStream& random) const override {
    if (!is_drawn) return std::nullopt;
    return block(d, random);
  }
};

TEST(UserCompressor, WorksInAlgorithmsWithTheStepsOfTheirTheory) {
  for (const char* precision : {"fp64", "fp32"})
    for (const char* algorithm : {"marina", "diana"}) {
      const Experiment experiment =
          quadratics(precision, "identity")
              .with({{"algorithm.name", algorithm}, {"algorithm.step_size", "theory"}, {"run.rounds", 2000}});
      TrainOptions options;
      if (std::string(precision) == "fp64")
        options.compressor = RandomBlock<double>();
      else
        options.compressor = RandomBlock<float>();
      const TrainResult result = train(experiment, options);
      EXPECT_LT(result.metrics("grad_norm_sq").back(), 1e-2 * result.metrics("grad_norm_sq").front());
      options.transport = "encoded";
      EXPECT_EQ(model_of(train(experiment, options)), model_of(result)) << algorithm;
      EXPECT_EQ(result.experiment().get("algorithm.compressor"), "custom:random_block");
    }
}

TEST(UserCompressor, PaysForIndicesThatAreNotDrawn) {
  const Experiment experiment =
      quadratics("fp64", "identity").with({{"algorithm.name", "dcgd"}, {"run.rounds", 5}});
  RandomBlock<double> chosen;
  chosen.is_drawn = false;
  const TrainResult drawn = train(experiment, {.compressor = RandomBlock<double>()});
  const TrainResult sent = train(experiment, {.compressor = chosen});
  EXPECT_EQ(model_of(drawn), model_of(sent));
  EXPECT_EQ(drawn.rows().back().bits_up, 5 * 10 * 64);
  EXPECT_EQ(sent.rows().back().bits_up, 5 * (10 * 64 + 30));  // a bitmap of 30 bits
}

TEST(UserCompressor, IsCheckedAsThoseOfTheLibrary) {
  // EF21 needs a contractive compressor; a random block with omega = 2 is not one.
  EXPECT_NE(error_of([] {
              train(quadratics("fp64", "identity"), {.compressor = RandomBlock<double>()});
            }).find("ef21 needs a contractive compressor, but custom:random_block is not one"),
            std::string::npos);
  EXPECT_EQ(error_of([] { train(quadratics("fp32", "identity"), {.compressor = RandomBlock<double>()}); }),
            "algorithm.compressor: the run has precision = \"fp32\", but the program's compressor is of "
            "double");
  EXPECT_NE(error_of([] {
              train(quadratics("fp64", "identity").with("algorithm.compressor", "custom:mine"));
            }).find("'custom:mine' needs a program that brings the compressor"),
            std::string::npos);
  std::vector<Distance<double>> clients = distances<double>();
  EXPECT_EQ(
      error_of([&] {
        train(clients, {.algorithm = "dcgd", .compressor = "natural(custom:random_block)"},
              {.compressor = RandomBlock<double>()});
      }),
      "algorithm.compressor: 'natural(custom:random_block)' has the program's compressor within another "
      "one; let its compress() do both");
}

struct Lies : RandomBlock<double> {
  std::optional<std::vector<std::uint32_t>> drawn_indices(std::size_t, RandomStream&) const override {
    return std::vector<std::uint32_t>{1, 2};
  }
};

TEST(UserCompressor, IsToldOfIndicesThatDiffer) {
  EXPECT_EQ(error_of([] {
              train(quadratics("fp64", "identity").with("algorithm.name", "dcgd"), {.compressor = Lies()});
            }),
            "compressor random_block: drawn_indices() differ from the indices that compress() sends");
}

}  // namespace
}  // namespace gradwire
