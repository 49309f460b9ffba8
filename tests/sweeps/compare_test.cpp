// gradwire compare: a sweep over algorithms, made from an experiment.
#include <gtest/gtest.h>
#include <set>

#include "tests/sweeps/sweep_fixture.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

class Compare : public Sweep {
 protected:
  Compare() {
    folder_.write("steps.toml", kSweptQuadratic);
    folder_.write("points.csv", "1,2,1\n2,1,0\n0,1,1\n3,1,0\n1,0,0\n2,2,1\n");
    folder_.write("logistic.toml", kSweptLogistic);
  }
  // Returns the step sizes that best.csv names, by algorithm in its order.
  std::vector<std::string> best_steps(const std::string& folder) const {
    std::vector<std::string> steps;
    for (const std::string& line : lines_of(read(folder + "/best.csv")))
      if (const std::size_t at = line.find("step_size = "); at != std::string::npos)
        steps.push_back(line.substr(at + 12, line.find_first_of(",\"", at) - at - 12));
    return steps;
  }
};

TEST_F(Compare, GivesEachAlgorithmItsCompressorAndDrawsOneFigure) {
  const ProgramResult r =
      gradwire({"compare", "steps.toml", "--algorithms", "gd,diana,ef21,fedavg", "--seeds", "3"});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* line : {"gd: compressor identity (compresses nothing), theory's step ",
                           "diana: compressor randk:k=2 (topk:k=2 is biased), theory's step ",
                           "ef21: compressor topk:k=2 (the experiment's compressor), theory's step ",
                           "fedavg: compressor identity (compresses nothing), default step 1"})
    EXPECT_NE(r.err.find(line), std::string::npos) << r.err;
  EXPECT_NE(r.out.find("results: results/steps-compare, figure: results/steps-compare/plot.svg"),
            std::string::npos)
      << r.out;
  EXPECT_EQ(lines_of(read("results/steps-compare/runs.csv")).size(), 1u + 4 * 3);
  EXPECT_EQ(lines_of(read("results/steps-compare/best.csv")).size(), 1u + 4);
  const std::string figure = read("results/steps-compare/plot.svg");
  for (const char* label : {">GD<", ">DIANA, Rand-2<", ">EF21, Top-2<", ">FedAvg<"})
    EXPECT_NE(figure.find(label), std::string::npos) << label;
  EXPECT_NE(read("results/steps-compare/plot.csv").find("gap:bits"), std::string::npos);
}

TEST_F(Compare, WritesTheFigureForAPaperWithoutRepeatingRuns) {
  const std::vector<std::string> command = {"compare", "steps.toml", "--algorithms",
                                            "gd,ef21", "--seeds",    "1"};
  ASSERT_EQ(gradwire(command).code, 0);
  std::vector<std::string> with_figure = command;
  with_figure.insert(with_figure.end(), {"--figure", "fig.tex", "--width", "234pt"});
  const ProgramResult r = gradwire(with_figure);
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("2 of 2 runs have results already"), std::string::npos) << r.err;
  EXPECT_NE(read("fig.tex").find("font=\\footnotesize"), std::string::npos);
  EXPECT_NE(read("fig.tex").find("EF21, Top-2"), std::string::npos);
  with_figure[7] = "fig.jpg";
  EXPECT_NE(gradwire(with_figure).err.find("--figure fig.jpg: the name must end in"), std::string::npos);
  with_figure = command;
  with_figure.insert(with_figure.end(), {"--width", "234pt"});
  EXPECT_NE(gradwire(with_figure).err.find("add --figure FILE"), std::string::npos);
}

TEST_F(Compare, LeavesASweepThatRepeatsNothing) {
  ASSERT_EQ(gradwire({"compare", "logistic.toml", "--algorithms", "gd,ef21", "--seeds", "2"}).code, 0);
  const ProgramResult r =
      gradwire({"sweep", "results/steps-compare/sweep.toml", "--out", "results/steps-compare"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("4 of 4 runs have results already"), std::string::npos) << r.err;
}

TEST_F(Compare, WidensTheStepsUntilTheBestIsNotAtAnEnd) {
  // EF21's best step on this problem is far above theory's.
  const ProgramResult r =
      gradwire({"compare", "steps.toml", "--algorithms", "ef21,gd", "--seeds", "1", "--tune", "--set",
                "algorithm.compressor=topk:k=1", "--set", "run.rounds=200", "--set", "problem.dim=100"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("ef21: the best step, theory*16, is at an end; trying theory*32 to theory*256"),
            std::string::npos)
      << r.err;
  EXPECT_EQ(r.out.find("first or last one tried"), std::string::npos) << r.out;
  const std::vector<std::string> steps = best_steps("results/steps-compare");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_GT(std::stod(steps[0].substr(steps[0].find('*') + 1)), 16) << steps[0];
}

TEST_F(Compare, EndsTheSearchOnAFunctionWithoutAMinimum) {
  folder_.write("separable.csv", "1000,0,1\n-1000,0,0\n0,1,1\n0,-1,0\n0,2,1\n0,-2,0\n");
  const ProgramResult r =
      gradwire({"compare", "logistic.toml", "--algorithms", "gd", "--seeds", "1", "--tune", "--set",
                "problem.data=csv:separable.csv", "--set", "problem.regularizer=none"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("the best step is the largest one tried, theory*16384; if f has no minimum"),
            std::string::npos)
      << r.err;
  EXPECT_EQ(best_steps("results/steps-compare"), std::vector<std::string>{"theory*16384"});
}

TEST_F(Compare, KeepsBatchesParticipationAndParametersWhereTheyBelong) {
  const ProgramResult r =
      gradwire({"compare", "logistic.toml", "--algorithms", "fedavg,gd,nesterov", "--seeds", "1", "--set",
                "algorithm.name=fedavg", "--set", "algorithm.batch=1", "--set", "algorithm.local_steps=2",
                "--set", "clients.participation=0.5"});
  ASSERT_EQ(r.code, 0) << r.err;
  const std::string sweep = read("results/steps-compare/sweep.toml");
  const auto grid_of = [&](const std::string& name) {
    const std::size_t at = sweep.find("algorithm.name = \"" + name + "\"");
    return sweep.substr(at, sweep.find("[[", at) - at);
  };
  EXPECT_NE(grid_of("fedavg").find("algorithm.local_steps = 2"), std::string::npos) << sweep;
  EXPECT_NE(grid_of("gd").find("algorithm.batch = 1"), std::string::npos) << sweep;
  EXPECT_EQ(grid_of("gd").find("local_steps"), std::string::npos) << sweep;
  EXPECT_EQ(grid_of("nesterov").find("batch"), std::string::npos) << sweep;
}

TEST_F(Compare, IgnoresTheAlgorithmOfTheExperimentAndItsParameters) {
  // fedavg compresses nothing, and has no momentum.
  const ProgramResult done = gradwire({"compare", "steps.toml", "--algorithms", "gd, ef21 , fedavg",
                                       "--seeds", "1", "--set", "algorithm.name=fedavg", "--compressor",
                                       "topk:k=3", "--local-steps", "2", "--panel", "loss:bits"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.err.find("ef21: compressor topk:k=3 (the experiment's compressor)"), std::string::npos)
      << done.err;
  const std::string sweep = read("results/steps-compare/sweep.toml");
  EXPECT_NE(sweep.find("algorithm.local_steps = 2"), std::string::npos) << sweep;
  EXPECT_NE(sweep.find("panels = [\"loss:bits\"]"), std::string::npos) << sweep;
  const ProgramResult unknown = gradwire(
      {"compare", "steps.toml", "--algorithms", "gd,ef21", "--set", "algorithm.local_steps=2", "--out", "x"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("no compared algorithm has the parameter local_steps (gd, ef21)"),
            std::string::npos)
      << unknown.err;
}

TEST_F(Compare, TakesACompressorForEachAlgorithm) {
  const ProgramResult r =
      gradwire({"compare", "steps.toml", "--algorithms",
                "gd,ef21:topk:k=3,ef21:topk:k=6,marina:randk:k=2,scaled=true", "--seeds", "1"});
  ASSERT_EQ(r.code, 0) << r.err;
  const std::string figure = read("results/steps-compare/plot.svg");
  for (const char* label : {">EF21, Top-3<", ">EF21, Top-6<", ">MARINA, Rand-2<"})
    EXPECT_NE(figure.find(label), std::string::npos) << label;
  const ProgramResult misfit =
      gradwire({"compare", "steps.toml", "--algorithms", "diana:topk:k=3", "--out", "x"});
  EXPECT_EQ(misfit.code, 2);
  EXPECT_NE(
      misfit.err.find("--algorithms diana:topk:k=3: does not fit: diana would take randk:k=3 (topk:k=3 is "
                      "biased)"),
      std::string::npos)
      << misfit.err;
}

TEST_F(Compare, ReplacesNoComparisonOfOtherSettings) {
  const auto compare = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"compare", "steps.toml", "--seeds", "1", "--algorithms"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return gradwire(arguments);
  };
  ASSERT_EQ(compare({"gd,ef21"}).code, 0);
  const ProgramResult other = compare({"gd,ef21", "--rounds", "10"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(
      other.err.find("results/steps-compare: has a comparison of other settings: run.rounds = 20; choose "
                     "another folder with --out, replace it with --overwrite, or move it aside with --fresh"),
      std::string::npos)
      << other.err;
  EXPECT_NE(compare({"gd"}).err.find("algorithm.name = ef21"), std::string::npos);
  EXPECT_EQ(compare({"gd,ef21,diana"}).code, 0) << "adds to the comparison";
  EXPECT_EQ(compare({"gd,ef21,diana", "--tune"}).code, 0);
  EXPECT_EQ(compare({"gd,ef21,diana", "--tune"}).code, 0) << "continues";
  EXPECT_EQ(compare({"gd,ef21", "--rounds", "10", "--overwrite"}).code, 0);
  EXPECT_EQ(compare({"gd,ef21", "--fresh"}).code, 0);
  EXPECT_TRUE(fs::exists(path() / "results/steps-compare.before/sweep.toml"));
}

TEST_F(Compare, TakesTheFastestOfStepsThatAllConverge) {
  // Each seed holds out other samples, and so has another minimum.
  const ProgramResult r =
      gradwire({"compare", "logistic.toml", "--algorithms", "gd", "--seeds", "2", "--tune", "--rounds",
                "3000", "--set", "run.evaluate_every=1", "--set", "problem.test_share=0.34"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("values end within rounding of the best"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("runs have converged"), std::string::npos) << r.out;
  const std::vector<std::string> steps = best_steps("results/steps-compare");
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].find("theory*0."), std::string::npos) << "a smaller step is not faster: " << steps[0];
}

TEST_F(Compare, LeavesAFolderOfWhichPlotDrawsTheBestRuns) {
  ASSERT_EQ(
      gradwire({"compare", "steps.toml", "--algorithms", "ef21,gd,diana", "--seeds", "1", "--tune"}).code, 0);
  const auto curves = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"plot", "results/steps-compare", "--out", "f.csv"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult r = gradwire(arguments);
    EXPECT_EQ(r.code, 0) << r.err;
    std::set<std::string> labels;
    for (const std::string& line : lines_of(read("f.csv")))
      labels.insert(
          line.substr(0, line.find(',', line.find('"') == line.npos ? line.find(',') + 1 : line.rfind('"'))));
    return std::pair(labels.size() - 1, r.err);  // without the header
  };
  const auto [few, said] = curves({});
  EXPECT_EQ(few, 3u);
  EXPECT_NE(said.find("the figure has the best algorithm.step_size of each algorithm; --all draws all runs"),
            std::string::npos)
      << said;
  const auto [many, warned] = curves({"--all"});
  EXPECT_GE(many, 3u * 6);
  EXPECT_NE(warned.find(std::to_string(many) + " curves, which are hard to distinguish"), std::string::npos)
      << warned;
  EXPECT_NE(read("f.csv").find("\"EF21, Top-2, theory*4\""), std::string::npos);
}

TEST_F(Compare, RefusesInOneLineBeforeAnyRun) {
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"compare"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult r = gradwire(arguments);
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_FALSE(fs::exists(path() / "results"));
    return r.err;
  };
  EXPECT_NE(refusal({"steps.toml", "--algorithms", "gd,ef12"}).find("--algorithms ef12: unknown algorithm"),
            std::string::npos);
  EXPECT_NE(refusal({"steps.toml", "--algorithms", "gd,gd"}).find("named twice"), std::string::npos);
  EXPECT_NE(refusal({"steps.toml"}).find("--algorithms is required"), std::string::npos);
  EXPECT_NE(
      refusal({"logistic.toml", "--algorithms", "gd,nesterov", "--set", "problem.regularizer=nonconvex"})
          .find("--algorithms nesterov: algorithm.mu: this problem is not known to be strongly convex"),
      std::string::npos);
}

}  // namespace
}  // namespace gradwire
