#include "samples/local_problem.h"

#include <fstream>
#include <gtest/gtest.h>

#include "config/experiment_file.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

ExperimentSpec experiment(const std::string& problem, const std::string& clients) {
  return parse_experiment(
             "[problem]\n" + problem + "\n[clients]\n" + clients + "\n[algorithm]\nname = \"gd\"\n", "t.toml")
      .experiment;
}

bool equal(const Dataset& a, const Dataset& b) {
  return a.columns == b.columns && a.row_start == b.row_start && a.column == b.column && a.value == b.value &&
         a.label == b.label;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(DataChoice, ReadsSourceAndPart) {
  const DataChoice both = parse_data_choice("libsvm:a9a#3/20");
  EXPECT_EQ(both.source, "libsvm:a9a");
  EXPECT_EQ(both.part->index, 3u);
  EXPECT_EQ(both.part->count, 20u);
  EXPECT_EQ(parse_data_choice("digits").source, "digits");
  EXPECT_FALSE(parse_data_choice("digits").part);
  EXPECT_EQ(parse_data_choice("#0/2").source, "");
  EXPECT_EQ(parse_data_choice("").source, "");
  EXPECT_EQ(parse_data_choice("none").source, "");
}

TEST(DataChoice, RejectsInvalidParts) {
  EXPECT_NE(message_of([] {
              parse_data_choice("a#20/20");
            }).find("parts are numbered from 0, so the last of 20 is #19/20"),
            std::string::npos);
  for (const char* text :
       {"a#", "a#1", "a#x/3", "a#1/x", "a#1/0", "a#-1/3", "a#1/3 ", "a#1/3/5", "a#99999999999/3"})
    EXPECT_NE(message_of([&] { parse_data_choice(text); }), "no error") << text;
}

TEST(LocalProblem, GivesABarePathTheKindOfTheExperimentsData) {
  const std::string libsvm = "libsvm:train.txt";
  EXPECT_EQ(complete_source("my.txt", libsvm), "libsvm:my.txt");
  EXPECT_EQ(complete_source("csv:my.csv", libsvm), "csv:my.csv");
  EXPECT_EQ(complete_source("digits", libsvm), "digits");
  EXPECT_EQ(complete_source("", libsvm), "libsvm:train.txt");
  EXPECT_NE(message_of([&] { complete_source("my.txt", "digits"); }).find("write its kind before it"),
            std::string::npos);
}

TEST(LocalProblem, LoadsTheSamplesThatTheSimulationGivesThatClient) {
  for (const char* partition : {"contiguous", "iid", "by_label", "dirichlet"}) {
    const auto e = experiment("kind = \"mlp\"\ndata = \"digits\"\ntest_share = 0.1",
                              "count = 7\npartition = \"" + std::string(partition) + "\"");
    const std::vector<ClientDataset> parts = load_samples(e, ".").all_parts();
    ASSERT_EQ(parts.size(), 7u);
    for (std::uint32_t i = 0; i < 7; ++i) {
      const ClientDataset own = load_part(e, {"digits", PartNumber{i, 7}}, "/");
      EXPECT_TRUE(equal(own.train, parts[i].train) && equal(own.test, parts[i].test))
          << partition << " " << i;
      EXPECT_GT(own.test.rows(), 0u);
    }
  }
}

TEST(LocalProblem, LoadsTheSameConsecutivePartsForReplicatedDataEverywhere) {
  for (const char* partition : {"contiguous", "iid", "by_label"})
    for (const DataReplication replication :
         {DataReplication{3, ReplicaPlacement::kRing}, DataReplication{4, ReplicaPlacement::kGroups}}) {
      // 1,616 samples to train on: the parts of 8 clients are equal even without replication.
      const std::string problem = "kind = \"mlp\"\ndata = \"digits\"\ntest_share = 0.1007",
                        clients = "count = 8\npartition = \"" + std::string(partition) + "\"";
      const std::vector<ClientDataset> parts = load_samples(experiment(problem, clients), ".").all_parts();
      const auto e = experiment(
          problem, clients + "\nreplication = " + std::to_string(replication.count) + "\nplacement = \"" +
                       (replication.placement == ReplicaPlacement::kRing ? "ring" : "groups") + "\"");
      const SharedSamples all = load_samples(e, ".");
      std::size_t rows = 0;
      for (const ClientDataset& part : parts) rows += part.train.rows();
      EXPECT_EQ(all.train.rows(), rows) << "one copy in memory";
      for (std::uint32_t i = 0; i < 8; ++i) {
        std::vector<ClientDataset> held;
        for (std::uint32_t k = 0; k < replication.count; ++k)
          held.push_back(parts[replication.placement == ReplicaPlacement::kRing
                                   ? (i + k) % 8
                                   : i / replication.count * replication.count + k]);
        const Dataset want = SharedSamples(std::span<const ClientDataset>(held)).train;
        EXPECT_TRUE(equal(all.part(i).train, want)) << partition << " " << i;
        EXPECT_TRUE(equal(load_part(e, {"digits", PartNumber{i, 8}}, "/").train, want))
            << partition << " " << i;
        EXPECT_EQ(all.train_count(i), want.rows());
      }
    }
}

TEST(LocalProblem, GivesARangeOfClientsTheirSamplesAndAllLabels) {
  const TemporaryFolder folder;
  std::ofstream train(folder.path() / "train.txt"), test(folder.path() / "test.txt");
  for (int k = 0; k < 400; ++k) train << (k * 7 % 5) << " " << 1 + k % 9 << ":" << k + 1 << "\n";
  for (int k = 0; k < 50; ++k) test << (k % 6) << " " << 1 + k % 4 << ":" << k + 1 << "\n";
  train.close(), test.close();
  for (const char* problem : {"data = \"digits\"\ntest_share = 0.1", "data = \"libsvm:train.txt\"",
                              "data = \"libsvm:train.txt\"\ntest = \"libsvm:test.txt\""})
    for (const char* partition :
         {"partition = \"contiguous\"", "partition = \"iid\"", "partition = \"by_label\"",
          "partition = \"dirichlet\"", "samples_per_client = 3", "replication = 3",
          "replication = 7\npartition = \"iid\""}) {
      SCOPED_TRACE(std::string(problem) + ", " + partition);
      const ExperimentSpec e =
          experiment("kind = \"mlp\"\n" + std::string(problem), "count = 7\n" + std::string(partition));
      const SharedSamples all = load_samples(e, folder.path());
      for (const ClientRange mine : {ClientRange{0, 3}, ClientRange{3, 7}, ClientRange{0, 0}}) {
        SharedSamples some = load_samples(e, folder.path(), mine);
        const DataSchema want = schema_of(all, problem_spec(e)), got = schema_of(some, problem_spec(e));
        EXPECT_EQ(got.labels, want.labels);
        EXPECT_EQ(got.columns, want.columns);
        for (std::uint32_t i = 0; i < 7; ++i) EXPECT_EQ(some.train_count(i), all.train_count(i));
        some.keep_clients(mine.first, mine.end);
        for (std::uint32_t i = mine.first; i < mine.end; ++i) {
          EXPECT_TRUE(equal(some.part(i).train, all.part(i).train)) << i;
          EXPECT_TRUE(equal(some.part(i).test, all.part(i).test)) << i;
        }
        if (!all.train_shares.is_drawn() && e.clients.replication == 1) {
          std::size_t own = 0;
          for (std::uint32_t i = mine.first; i < mine.end; ++i) own += all.part(i).train.value.size();
          EXPECT_EQ(some.train.value.size(), own);
        }
      }
    }
}

TEST(LocalProblem, LoadsAWholeFileOfTheClientLessTheTestShare) {
  const TemporaryFolder folder;
  std::ofstream out(folder.path() / "own.txt");
  for (int k = 0; k < 10; ++k) out << (k % 2) << " 1:" << k + 1 << "\n";
  out.close();
  const auto e = experiment("kind = \"logistic\"\ndata = \"libsvm:x\"\ntest_share = 0.2", "count = 5");
  const ClientDataset part = load_part(e, {"own.txt", std::nullopt}, folder.path());
  EXPECT_EQ(part.train.rows(), 8u);
  EXPECT_EQ(part.test.rows(), 2u);
}

constexpr const char* kPets =
    "name,animal,age\nRex,dog,3\nTom,cat,2\nAce,dog,\nKit,cat,5\nLeo,cat,9\nSam,dog,7\n";
const std::string kOfPets = "data = \"pets.csv\"\nlabel = \"animal\"\ncolumns = \"age\"\nmissing = \"drop\"";

TEST(LocalProblem, ReadsATableByTheKeysOfTheExperiment) {
  const TemporaryFolder folder;
  folder.write("pets.csv", kPets);
  const ExperimentSpec e = experiment("kind = \"logistic\"\n" + kOfPets, "count = 5");
  SharedSamples all = load_samples(e, folder.path());
  EXPECT_EQ(all.train.label, (std::vector<double>{1, -1, -1, -1, 1}));
  EXPECT_EQ(all.train.value, (std::vector<double>{3, 2, 5, 9, 7}));
  EXPECT_EQ(
      all.warnings,
      (std::vector<std::string>{
          (folder.path() / "pets.csv").string() + ": labels: cat -> -1, dog -> +1; problem.labels = "
                                                  "\"dog, cat\" changes that",
          (folder.path() / "pets.csv").string() + ": problem.missing = \"drop\" leaves out 1 of 6 lines"}));
  SharedSamples mine = load_samples(e, folder.path(), ClientRange{1, 3});
  EXPECT_EQ(mine.train.label, all.train.label);
  mine.keep_clients(1, 3);
  all.keep_clients(1, 3);
  EXPECT_TRUE(equal(mine.train, all.train));
}

TEST(LocalProblem, NumbersTheTextsOfTestDataAsThoseOfTheTrainingData) {
  const TemporaryFolder folder;
  folder.write("pets.csv", kPets);
  folder.write("more.csv", "name,animal,age\nIda,dog,4\n");
  const ExperimentSpec e = experiment("kind = \"logistic\"\ntest = \"more.csv\"\n" + kOfPets, "count = 1");
  EXPECT_EQ(load_samples(e, folder.path()).test.label, std::vector<double>{1});
  EXPECT_EQ(load_samples(e, folder.path(), ClientRange{0, 1}).test.label, std::vector<double>{1});
}

TEST(LocalProblem, RefusesTextLabelsWithoutClassesAndNamesTheirColumn) {
  const TemporaryFolder folder;
  folder.write("pets.csv", kPets);
  const std::string column = "column 2, 'animal', of " + (folder.path() / "pets.csv").string();
  EXPECT_EQ(message_of([&] {
              load_samples(experiment("kind = \"least_squares\"\n" + kOfPets, "count = 1"), folder.path());
            }),
            "kind = \"least_squares\" needs numbers as labels, but the label has texts: it is " + column +
                "; use kind = \"logistic\" for two texts or \"mlp\" for more, or name another column in "
                "problem.label");
  const ExperimentSpec ages =
      experiment("kind = \"logistic\"\ndata = \"pets.csv\"\nlabel = 3\ncolumns = \"2\"\nmissing = \"drop\"",
                 "count = 1");
  const SharedSamples samples = load_samples(ages, folder.path());
  EXPECT_EQ(message_of([&] { check_schema(problem_spec(ages), schema_of(samples, problem_spec(ages))); }),
            "logistic regression needs exactly two labels but the data has 5: 2, 3, 5, 7, 9, in column 3, "
            "'age', of " +
                (folder.path() / "pets.csv").string() +
                "; for more classes use kind = \"mlp\"; problem.label names another column");
}

TEST(LocalProblem, RefusesTextsInAFileThatOneClientAloneHas) {
  const TemporaryFolder folder;
  const std::string pets = folder.write("pets.csv", kPets).string();
  const ExperimentSpec e = experiment("kind = \"logistic\"\n" + kOfPets, "count = 5");
  const std::string
      by_own_file =
          ", which each client would number by its own file; name the texts of all clients under "
          "[problem] of the server's experiment, as in ",
      numbers = ", write numbers, or let all clients hold parts of one file, as in --data '";
  EXPECT_EQ(message_of([&] {
              load_part(e, {pets, std::nullopt}, folder.path());
            }),
            "--data '" + pets + "': has text in the label 'animal'" + by_own_file + "labels = \"cat, dog\"" +
                numbers + pets + "#0/5'");
  const std::string homes =
      folder.write("homes.csv", "rooms,area,kind,y\n3,city,flat,no\n4,land,house,yes\n").string();
  const auto of_homes = [](const std::string& keys) {
    return experiment("kind = \"logistic\"\ndata = \"csv:homes.csv\"\n" + keys, "count = 2");
  };
  EXPECT_EQ(message_of([&] {
              load_part(of_homes(""), {homes, std::nullopt}, folder.path());
            }),
            "--data '" + homes + "': has text in 'area', 'kind' and the label 'y'" + by_own_file +
                "labels = \"no, yes\" and categories = \"area: city|land; kind: flat|house\"" + numbers +
                homes + "#0/2'");
  const ClientDataset own =
      load_part(of_homes("labels = \"yes, no\"\ncategories = \"area: city|land; kind: flat|house|boat\""),
                {homes, std::nullopt}, folder.path());
  EXPECT_EQ(own.train.label, (std::vector<double>{1, -1}));
  EXPECT_EQ(own.train.columns, 6u);
  EXPECT_EQ(load_part(e, {pets, PartNumber{1, 5}}, folder.path()).train.label, std::vector<double>{-1});
}

// A file whose numbers differ from client to client.
std::string write_numbers(const TemporaryFolder& folder) {
  std::string text;
  for (int k = 0; k < 70; ++k)
    text += std::to_string(k % 2) + " 1:" + std::to_string(k * k + 1) + " 2:" + std::to_string(k % 7) +
            (k == 3 ? " 4:5\n" : "\n");
  return folder.write("n.txt", text).string();
}

TEST(LocalProblem, NormalizesPartsOfOneFileByTheSamplesOfAllClients) {
  const TemporaryFolder folder;
  const std::string file = write_numbers(folder);
  for (const std::string kind : {"standard", "minmax", "unit_rows"})
    for (const std::string clients : {"partition = \"iid\"", "samples_per_client = 4", "replication = 3"}) {
      SCOPED_TRACE(kind + ", " + clients);
      const std::string problem =
          "kind = \"logistic\"\ndata = \"libsvm:" + file + "\"\ntest = \"libsvm:" + file + "\"";
      const ExperimentSpec plain = experiment(problem, "count = 7\n" + clients),
                           e = experiment(problem + "\nnormalize = \"" + kind + "\"",
                                          "count = 7\n" + clients);
      SharedSamples want = load_samples(plain, "/");
      const SharedSamples all = load_samples(e, "/");
      const Normalization map = *all.normalization;
      if (kind == "standard")
        EXPECT_GT(map.shift[0], 1000);
      else
        EXPECT_EQ(map.scale.size(), kind == "minmax" ? 4u : 0u);
      normalize(want.train, map);
      normalize(want.test, map);
      EXPECT_TRUE(equal(all.train, want.train));
      EXPECT_TRUE(equal(all.test, want.test));
      std::vector<ClientSums> sums;
      for (std::uint32_t i = 0; i < 7; ++i) {
        ClientDataset part = load_part(e, {"libsvm:" + file, PartNumber{i, 7}, "libsvm:" + file}, "/");
        if (needs_sums(map.kind)) {
          sums.push_back(sums_of(part.train, map.kind));
          normalize(part.train, map);
          normalize(part.test, map);
        }
        EXPECT_TRUE(equal(part.train, all.part(i).train)) << i;
        EXPECT_TRUE(equal(part.test, all.part(i).test)) << i;
        const SharedSamples mine = load_samples(e, "/", ClientRange{i, i + 1});
        EXPECT_EQ(*mine.normalization, map);
        EXPECT_EQ(mine.train.label, all.train.label);
        for (std::uint32_t k = 0; k < 7; ++k) EXPECT_EQ(mine.train_count(k), all.train_count(k));
        EXPECT_TRUE(equal(mine.part(i).train, all.part(i).train)) << i;
      }
      if (needs_sums(map.kind)) {
        EXPECT_EQ(normalization_of(sums, map.kind), map) << "what a server computes";
      }
    }
}

TEST(LocalProblem, NormalizesOtherDataByTheMapOfAModel) {
  const TemporaryFolder folder;
  write_numbers(folder);
  folder.write("more.txt", "1 1:7\n0 3:2\n");
  const std::string problem = "kind = \"logistic\"\nnormalize = \"minmax\"\ndata = ";
  const Preprocessing model =
      load_samples(experiment(problem + "\"libsvm:n.txt\"", "count = 2"), folder.path()).preprocessing();
  const ExperimentSpec e = experiment(problem + "\"libsvm:more.txt\"", "count = 2");
  const SharedSamples own = load_samples(e, folder.path()),
                      given = load_samples(e, folder.path(), std::nullopt, {}, model);
  EXPECT_EQ(own.train.value, (std::vector<double>{1, 1}));
  EXPECT_EQ(given.train.value, (std::vector<double>{(7.0 - 1) / (69 * 69), -1.0 / (69 * 69), 2}));
  EXPECT_EQ(*given.normalization, *model.normalization);
}

TEST(LocalProblem, NormalizesAFileOfOneClientOnlyByRowsOnItsOwn) {
  const TemporaryFolder folder;
  const std::string file = write_numbers(folder);
  const auto load = [&](const std::string& kind) {
    return load_part(
        experiment("kind = \"logistic\"\ndata = \"libsvm:x\"\nnormalize = \"" + kind + "\"", "count = 5"),
        {"libsvm:" + file, std::nullopt}, "/");
  };
  EXPECT_EQ(load("unit_rows").train.value[0], 1);
  for (const std::string kind : {"standard", "minmax"})
    EXPECT_TRUE(equal(load(kind).train, load("none").train)) << "the session normalises it";
}

TEST(LocalProblem, RefusesToNormalizeSamplesThatAreNotStored) {
  const ExperimentSpec e =
      experiment("kind = \"logistic\"\ndata = \"synthetic\"\nsamples = 4000000000\nnormalize = \"unit_rows\"",
                 "count = 5");
  EXPECT_NE(
      message_of([&] { load_samples(e, "/"); }).find("problem.normalize cannot be used with synthetic data"),
      std::string::npos);
}

TEST(LocalProblem, RejectsDataThatDoesNotFitTheExperiment) {
  const auto e = experiment("kind = \"mlp\"\ndata = \"digits\"", "count = 7");
  EXPECT_NE(message_of([&] {
              load_part(e, {"digits", PartNumber{1, 8}}, ".");
            }).find("part 1 of 8, but the experiment has 7"),
            std::string::npos);
  EXPECT_NE(message_of([&] { load_part(e, {}, "."); }).find("--data is missing"), std::string::npos);
  EXPECT_NE(message_of([&] {
              load_part(experiment("kind = \"mlp\"\ndata = \"digits\"", "count = 6\nreplication = 2"),
                        {"digits", {}}, ".");
            }).find("with clients.replication = 2 clients hold parts of one file; name this client's"),
            std::string::npos);
  const auto quadratic = experiment("kind = \"quadratic\"\ndim = 5", "count = 3");
  EXPECT_NE(message_of([&] {
              load_part(quadratic, {"digits", {}}, ".");
            }).find("has no data"),
            std::string::npos);
  EXPECT_EQ(load_part(quadratic, {"", PartNumber{1, 3}}, ".").train.rows(), 0u);
  EXPECT_EQ(load_samples(quadratic, ".").clients(), 0u);
}

TEST(LocalProblem, MakesASchemaOfAllPartsWithoutNumericLabels) {
  const auto empty_rows = [](std::size_t columns, std::vector<double> labels) {
    Dataset data;
    data.columns = columns;
    data.row_start.assign(labels.size() + 1, 0);
    data.label = std::move(labels);
    return data;
  };
  ClientDataset a, b;
  a.train = empty_rows(3, {2, -1, 2});
  b.train = empty_rows(2, {5});
  b.test = empty_rows(9, {-1, 7});
  const std::vector<ClientDataset> parts = {a, b};
  ProblemSpec spec;
  spec.problem = Mlp{};
  const DataSchema classes = schema_of(parts, spec);
  EXPECT_EQ(classes.columns, 9u);
  EXPECT_EQ(classes.labels, (std::vector<double>{-1, 2, 5, 7}));
  spec.problem = LeastSquares{};
  EXPECT_TRUE(schema_of(parts, spec).labels.empty());
}

TEST(ProblemSpec, TakesEverythingFromTheExperiment) {
  const auto e = parse_experiment(
                     "seed = 9\n[problem]\nkind = \"logistic\"\ndata = \"digits\"\nregularizer = "
                     "\"nonconvex\"\nlambda = 0.25\n"
                     "loss = \"sigmoid_squared\"\nbias = true\ndim = 80\n[clients]\ncount = "
                     "4\n[algorithm]\nname = \"gd\"\n",
                     "t.toml")
                     .experiment;
  const ProblemSpec spec = problem_spec(e);
  const auto& logistic = std::get<Logistic>(spec.problem);
  EXPECT_EQ(logistic.regularizer, Regularizer::kNonconvex);
  EXPECT_EQ(logistic.lambda, 0.25);
  EXPECT_EQ(logistic.loss, LinearLoss::kSigmoidSquared);
  EXPECT_TRUE(logistic.bias);
  EXPECT_EQ(logistic.rows.dim, 80u);
  EXPECT_EQ(spec.clients, 4u);
  EXPECT_EQ(spec.seed, 9u);
}

}  // namespace
}  // namespace gradwire
