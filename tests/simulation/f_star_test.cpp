// Tests of f*, compared with transcriptions in long double, and of the files that cache it.
#include "simulation/optimum/f_star.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <vector>

#include "config/experiment_file.h"
#include "engine/oracles/quadratic.h"
#include "simulation/optimum/f_star_file.h"
#include "simulation/optimum/minimise.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;
using Long = long double;
using Matrix = std::vector<std::vector<Long>>;

// Solves A v = b by elimination. REQUIRES: A is positive definite.
std::vector<Long> solve_dense(Matrix a, std::vector<Long> b) {
  const std::size_t d = b.size();
  for (std::size_t k = 0; k < d; ++k)
    for (std::size_t i = k + 1; i < d; ++i) {
      const Long factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < d; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  for (std::size_t k = d; k-- > 0;) {
    for (std::size_t j = k + 1; j < d; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

ExperimentSpec problem_of_text(const std::string& problem, const std::string& clients = "count = 4\n") {
  return parse_experiment("[problem]\n" + problem + "[clients]\n" + clients + "[algorithm]\nname = \"gd\"\n",
                          "test.toml")
      .experiment;
}

TEST(FStar, MatchesADenseSolveOfAQuadratic) {
  for (const double lambda : {0.5, 1e-3, 1e-6})
    for (const std::uint32_t d : {1u, 2u, 7u, 40u}) {
      const ExperimentSpec e =
          problem_of_text("kind = \"quadratic\"\nheterogeneity = 0.3\ndim = " + std::to_string(d) +
                          "\nlambda = " + std::to_string(lambda) + "\n");
      const QuadraticFamily family({d, lambda, 0.3}, 4, e.seed);
      Matrix a(d, std::vector<Long>(d));
      std::vector<Long> b(d);
      for (std::uint32_t i = 0; i < 4; ++i) {
        b[0] += family.linear(i) / Long(4);
        for (std::size_t j = 0; j < d; ++j) {
          a[j][j] += (family.nu(i) / 2 + family.shift()) / Long(4);
          if (j + 1 == d) continue;
          a[j][j + 1] += -family.nu(i) / 4 / Long(4);
          a[j + 1][j] = a[j][j + 1];
        }
      }
      const Long expected = -b[0] * solve_dense(a, b)[0] / 2;
      const std::optional<double> found = find_f_star(e, ".");
      ASSERT_TRUE(found);
      // Both values lose about 1 / lambda units in the last place of a long double.
      EXPECT_NEAR(static_cast<double>(*found / expected), 1, std::max(1e-15, 1e-19 / lambda))
          << "d = " << d << ", lambda = " << lambda;
    }
}

TEST(FStar, IsMissingForAQuadraticWithoutStrongConvexity) {
  // A_1 = 0 has no minimum in the direction of b_1.
  EXPECT_FALSE(
      find_f_star(problem_of_text("kind = \"quadratic\"\ndim = 1\nlambda = 0\n", "count = 1\n"), "."));
  // The rounding of A_i to fp32 does not count as curvature.
  ExperimentSpec e = problem_of_text("kind = \"quadratic\"\ndim = 20\nlambda = 0\n", "count = 5\n");
  e.precision = Precision::kFp32;
  EXPECT_FALSE(find_f_star(e, "."));
  EXPECT_FALSE(find_optimum(e, "."));
  EXPECT_TRUE(find_f_star(problem_of_text("kind = \"quadratic\"\ndim = 20\n", "count = 5\n"), "."))
      << "the default lambda";
}

// Samples with three features, for four clients with five samples each.
constexpr std::size_t kSamples = 20, kFeatures = 3;
struct FewSamples {
  Matrix a = Matrix(kSamples, std::vector<Long>(kFeatures));
  std::vector<Long> label;

  explicit FewSamples(bool classes) {
    for (std::size_t j = 0; j < kSamples; ++j) {
      for (std::size_t k = 0; k < kFeatures; ++k)
        a[j][k] = static_cast<double>((j * 7 + k * 11 + j * k) % 13) / 8 - 0.75;
      const double t = static_cast<double>((j * 5) % 17) / 8 - 1;
      label.push_back(classes ? (t > 0 ? 1 : -1) : t);
    }
  }
  fs::path write(const TemporaryFolder& folder) const {
    std::string text;
    for (std::size_t j = 0; j < kSamples; ++j) {
      text += number_text(static_cast<double>(label[j]));
      for (std::size_t k = 0; k < kFeatures; ++k)
        text += " " + std::to_string(k + 1) + ":" + number_text(static_cast<double>(a[j][k]));
      text += "\n";
    }
    return folder.write("data.txt", text);
  }
  // Returns the minimum of mean_j loss_j + lambda/2 ||x||^2 by Newton's method.
  Long minimum(bool classes, Long lambda) const {
    std::vector<Long> x(kFeatures);
    Long value = 0;
    for (int step = 0; step < 30; ++step) {
      std::vector<Long> g(kFeatures);
      Matrix h(kFeatures, std::vector<Long>(kFeatures));
      value = 0;
      for (std::size_t k = 0; k < kFeatures; ++k)
        value += lambda / 2 * x[k] * x[k], g[k] = lambda * x[k], h[k][k] = lambda;
      for (std::size_t j = 0; j < kSamples; ++j) {
        Long z = 0;
        for (std::size_t k = 0; k < kFeatures; ++k) z += a[j][k] * x[k];
        Long first = z - label[j], second = 1;
        if (classes) {
          const Long s = 1 / (1 + std::exp(label[j] * z));
          first = -label[j] * s, second = s * (1 - s);
          value += std::log1p(std::exp(-label[j] * z)) / kSamples;
        } else {
          value += first * first / 2 / kSamples;
        }
        for (std::size_t k = 0; k < kFeatures; ++k) {
          g[k] += first * a[j][k] / kSamples;
          for (std::size_t l = 0; l < kFeatures; ++l) h[k][l] += second * a[j][k] * a[j][l] / kSamples;
        }
      }
      const std::vector<Long> v = solve_dense(h, g);
      for (std::size_t k = 0; k < kFeatures; ++k) x[k] -= v[k];
    }
    return value;
  }
};

TEST(FStar, MatchesALongDoubleTranscriptionOfLinearModels) {
  for (const bool classes : {false, true})
    for (const bool ridge : {false, true}) {
      const TemporaryFolder folder;
      const FewSamples data(classes);
      const ExperimentSpec e =
          problem_of_text("kind = \"" + std::string(classes ? "logistic" : "least_squares") +
                          "\"\ndata = \"libsvm:" + data.write(folder).string() + "\"\n" +
                          (ridge ? "regularizer = \"l2\"\nlambda = 0.01\n" : ""));
      const std::optional<double> found = find_f_star(e, ".");
      ASSERT_TRUE(found);
      EXPECT_NEAR(static_cast<double>(*found / data.minimum(classes, ridge ? 0.01L : 0)), 1, 1e-15)
          << classes << ridge;
    }
}

TEST(FStar, AgreesBetweenTheAcceleratedMethodAndNewtons) {
  const ExperimentSpec e =
      problem_of_text("kind = \"quadratic\"\nheterogeneity = 0.3\ndim = 30\nlambda = 0.001\n");
  const ProblemSpec spec = problem_spec(e);
  const auto functions = make_client_objectives<double>(spec, {}, {});
  MeanFunction f(*functions, {});
  const std::optional<double> closed = find_f_star(e, ".");
  const std::optional<Minimum> newton = newton_minimum(f);
  const std::optional<Minimum> accelerated = accelerated_minimum(f, smoothness(spec, {}, {}, {}).L, 1e-3);
  ASSERT_TRUE(newton && accelerated && closed);
  EXPECT_NEAR(newton->value / *closed, 1, 1e-14);
  EXPECT_NEAR(accelerated->value / *closed, 1, 1e-14);
  const auto optimum = find_optimum(e, ".");
  ASSERT_TRUE(optimum);
  std::vector<double> gradient(30);
  EXPECT_NEAR(f.value_and_gradient(optimum->x, gradient) / *closed, 1, 1e-14);
  for (const double g : gradient) EXPECT_NEAR(g, 0, 1e-13);
  EXPECT_EQ(optimum->f_star, *closed);
  double sum = 0;
  for (const double g : gradient) sum += g * g;
  EXPECT_NEAR(optimum->grad_norm, std::sqrt(sum), 1e-20);
}

TEST(FStar, IsTheInfimumIfNoPointAttainsIt) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("data.txt", "1 1:1\n-1 1:-1\n1 1:2\n-1 1:-3\n");
  const auto found = find_f_star(
      problem_of_text("kind = \"logistic\"\ndata = \"libsvm:" + file.string() + "\"\n", "count = 2\n"), ".");
  ASSERT_TRUE(found);
  EXPECT_NEAR(*found, 0, 1e-25);
}

TEST(FStar, IsNotSearchedIfFIsNotConvex) {
  for (const char* problem :
       {"kind = \"mlp\"\ndata = \"digits\"\n",
        "kind = \"logistic\"\ndata = \"digits\"\nloss = \"sigmoid_squared\"\n",
        "kind = \"least_squares\"\ndata = \"digits\"\nregularizer = \"nonconvex\"\nlambda = 0.1\n"}) {
    EXPECT_FALSE(is_convex(problem_of_text(problem))) << problem;
    EXPECT_FALSE(find_f_star(problem_of_text(problem), ".")) << problem;
  }
}

// ---- kept in files ----

class FStarCache : public ::testing::Test {
 protected:
  // Writes a config.toml and returns its path.
  fs::path config(const std::string& name, const std::string& seed = "1", const std::string& step = "0.1",
                  const std::string& lambda = "0.01") {
    return folder.write(name + "/config.toml",
                        "seed = " + seed +
                            "\n[problem]\nkind = \"least_squares\"\ndata = \"libsvm:../data.txt\"\n"
                            "regularizer = \"l2\"\nlambda = " +
                            lambda +
                            "\n[clients]\ncount = 4\n[algorithm]\n"
                            "name = \"gd\"\nstep_size = " +
                            step + "\n");
  }
  fs::path only_file() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(cache / "f_star")) files.push_back(entry.path());
    EXPECT_EQ(files.size(), 1u);
    return files.at(0);
  }

  TemporaryFolder folder;
  fs::path cache = folder.path() / "cache";
};

TEST_F(FStarCache, ComputesFStarOnceForEachProblem) {
  FewSamples(false).write(folder);
  FStars first(cache);
  const FStars::OfRun a = first.of(config("a"));
  EXPECT_EQ(first.of(config("b", "2", "0.2")).value, a.value)
      << "samples are not drawn, so the seed does not change the problem";
  EXPECT_EQ(first.computed(), 1);
  FStars second(cache);
  const FStars::OfRun again = second.of(config("c", "3"));
  EXPECT_EQ(again.value, a.value);
  EXPECT_EQ(again.problem, a.problem);
  EXPECT_EQ(second.computed(), 0);
  EXPECT_NE(second.of(config("d", "1", "0.1", "0.02")).value, a.value);
  EXPECT_EQ(second.computed(), 1);
}

TEST_F(FStarCache, DistinguishesProblemsWithOtherData) {
  FewSamples(false).write(folder);
  const auto before = FStars(cache).of(config("a")).value;
  FewSamples(true).write(folder);
  FStars stars(cache);
  EXPECT_NE(stars.of(config("a")).value, before);
  EXPECT_EQ(stars.computed(), 1);
}

TEST_F(FStarCache, KnowsOnlyWhatItKeepsOrHasInClosedForm) {
  FewSamples(false).write(folder);
  const LoadedExperiment loaded = load_experiment(config("a"));
  const FStars stars(cache);
  EXPECT_FALSE(stars.known(loaded.experiment, loaded.folder()));
  const double value = *FStars(cache).of(config("a")).value;
  EXPECT_EQ(stars.known(loaded.experiment, loaded.folder()), value);
  stars.keep(loaded.experiment, loaded.folder(), value + 1);
  EXPECT_EQ(stars.known(loaded.experiment, loaded.folder()), value + 1);
  EXPECT_EQ(FStars(cache).of(config("a")).value, value + 1);
  const ExperimentSpec quadratic = problem_of_text("kind = \"quadratic\"\ndim = 20\n", "count = 5\n");
  EXPECT_EQ(stars.known(quadratic, "."), find_f_star(quadratic, "."));
  fs::resize_file(folder.path() / "data.txt", 65u << 20);
  EXPECT_FALSE(stars.known(loaded.experiment, loaded.folder())) << "the file takes long to read";
}

TEST_F(FStarCache, ReplacesADamagedFile) {
  FewSamples(false).write(folder);
  const auto value = FStars(cache).of(config("a")).value;
  const fs::path file = only_file();
  std::ifstream in(file);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> damaged = {"",
                                      "x",
                                      whole.substr(0, whole.size() / 2),
                                      whole + "\n",
                                      whole.substr(3),
                                      std::string(5 << 20, 'x'),
                                      "gradwire f_star 1\nvalue "};
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 1;
  }
  for (const std::string& text : damaged) {
    std::ofstream(file, std::ios::trunc) << text;
    FStars stars(cache);
    EXPECT_EQ(stars.of(config("a")).value, value);
    EXPECT_EQ(stars.computed(), 1) << text.substr(0, 200);
    EXPECT_EQ(FStars(cache).of(config("a")).value, value);
  }
}

TEST_F(FStarCache, WorksWithoutAWritableFolder) {
  FewSamples(false).write(folder);
  FStars nowhere("");
  const auto value = nowhere.of(config("a")).value;
  EXPECT_TRUE(value);
  folder.write("a-file", "");
  EXPECT_EQ(FStars(folder.path() / "a-file").of(config("a")).value, value);
}

TEST(FStarFolder, IsTheUsersCache) {
  const ScopedEnvironment home("HOME", "/home/user");
  const ScopedEnvironment cache("XDG_CACHE_HOME", "/var/cache");
  EXPECT_EQ(cache_folder(), "/var/cache/gradwire");
  const ScopedEnvironment relative("XDG_CACHE_HOME", "cache");
  EXPECT_EQ(cache_folder(), "/home/user/.cache/gradwire");
  const ScopedEnvironment none("HOME", nullptr);
  EXPECT_EQ(cache_folder(), "");
}

}  // namespace
}  // namespace gradwire
