// gradwire export, and runs that continue from its output.
#include <cmath>
#include <gtest/gtest.h>

#include "engine/files/number_file.h"
#include "storage/model_file.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExportedRun =
    "name = \"small\"\n[problem]\nkind = \"quadratic\"\ndim = 5\nlambda = 0.1\n[clients]\ncount = "
    "3\n[algorithm]\n"
    "name = \"gd\"\nstep_size = 0.1\n[run]\nrounds = 4\nx0 = \"normal\"\n";

// Returns the number after a key of a JSON object.
double number_after(const std::string& json, const std::string& key) {
  return std::stod(json.substr(json.find(':', json.find(key)) + 1));
}

class Export : public ::testing::Test {
 protected:
  ProgramResult gradwire(const std::vector<std::string>& arguments) {
    return run_gradwire(path(), arguments);
  }
  const fs::path& path() const { return folder_.path(); }

  TemporaryFolder folder_;
};

TEST_F(Export, WritesTheNumbersOfAModelInItsOwnPrecision) {
  const std::vector<float> small = {1.5F, -2.0F / 3, 0, 1e-40F};
  const std::vector<double> large = {1.0 / 3, -0.0, 1e300};
  write_model<float>(path() / "small.bin", small);
  write_model<double>(path() / "large.bin", large);
  const auto r = gradwire({"export", "small.bin", "small.npy"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "small.npy: 4 numbers, fp32\n");
  EXPECT_EQ(gradwire({"export", "small.bin", "small.raw"}).code, 0);
  EXPECT_EQ(gradwire({"export", "large.bin", "large.raw"}).code, 0);
  EXPECT_EQ(gradwire({"export", "small.npy", "again.raw"}).code, 0);
  std::vector<float> f(4);
  std::vector<double> d(3);
  ASSERT_TRUE(load_numbers<float>(path() / "small.npy", f));
  EXPECT_EQ(f, small);
  EXPECT_EQ(fs::file_size(path() / "small.raw"), 16u);
  ASSERT_TRUE(load_raw_numbers<float>(path() / "again.raw", f));
  EXPECT_EQ(f, small);
  EXPECT_EQ(fs::file_size(path() / "large.raw"), 24u);
  ASSERT_TRUE(load_raw_numbers<double>(path() / "large.raw", d));
  EXPECT_EQ(d, large);
}

// Computes the loss by plain loops over the parameters, at the places that docs/reference/results.md
// documents. It must equal that of `evaluate`.
TEST_F(Export, PlacesParametersOfAnMlpAsDocumented) {
  constexpr std::size_t kClasses = 3;
  std::vector<std::vector<double>> features;
  std::string data;
  for (std::size_t s = 0; s < 12; ++s) {
    features.push_back({0.5 + static_cast<double>(s), 1.0 - 0.25 * static_cast<double>(s % 5),
                        0.125 * static_cast<double>(s * s % 7)});
    data += std::to_string(s % kClasses) + " 1:" + std::to_string(features[s][0]) +
            " 2:" + std::to_string(features[s][1]) + " 3:" + std::to_string(features[s][2]) + "\n";
  }
  folder_.write("data.svm", data);
  for (const std::vector<std::size_t>& hidden : {std::vector<std::size_t>{}, {4}, {4, 5}}) {
    std::string widths;
    for (const std::size_t width : hidden) widths += (widths.empty() ? "" : ", ") + std::to_string(width);
    folder_.write("mlp.toml",
                  "name = \"mlp\"\n[problem]\nkind = \"mlp\"\ndata = \"libsvm:data.svm\"\nhidden = [" +
                      widths +
                      "]\n[clients]\ncount = 1\n[algorithm]\nname = \"gd\"\nstep_size = "
                      "0.1\n[run]\nrounds = 5\n");
    ASSERT_EQ(gradwire({"run", "mlp.toml", "--quiet", "--overwrite"}).code, 0);
    ASSERT_EQ(gradwire({"export", "results/mlp/model.bin", "x.raw"}).code, 0);
    std::vector<double> x(fs::file_size(path() / "x.raw") / sizeof(double));
    ASSERT_TRUE(load_raw_numbers<double>(path() / "x.raw", x));
    double loss = 0;
    for (std::size_t s = 0; s < features.size(); ++s) {
      std::vector<double> in = features[s];
      std::size_t at = 0;
      for (std::size_t layer = 0; layer <= hidden.size(); ++layer) {
        const std::size_t width = layer < hidden.size() ? hidden[layer] : kClasses;
        std::vector<double> out(x.begin() + static_cast<std::ptrdiff_t>(at + width * in.size()),
                                x.begin() + static_cast<std::ptrdiff_t>(at + width * in.size() + width));
        for (std::size_t o = 0; o < width; ++o) {
          for (std::size_t i = 0; i < in.size(); ++i)
            out[o] += x[at + (layer == 0 ? i * width + o : o * in.size() + i)] * in[i];
          if (layer < hidden.size()) out[o] = std::tanh(out[o]);
        }
        at += width * in.size() + width;
        in = out;
      }
      ASSERT_EQ(at, x.size());
      double sum = 0;
      for (const double logit : in) sum += std::exp(logit);
      loss += (std::log(sum) - in[s % kClasses]) / static_cast<double>(features.size());
    }
    const auto e = gradwire({"evaluate", "results/mlp/model.bin", "mlp.toml", "--json"});
    ASSERT_EQ(e.code, 0) << e.err;
    EXPECT_NEAR(number_after(e.out, "\"loss\""), loss, 1e-9) << widths;
  }
}

TEST_F(Export, LetsRunsContinueFromModelBinAndNpy) {
  folder_.write("run.toml", kExportedRun);
  ASSERT_EQ(gradwire({"run", "run.toml", "--quiet"}).code, 0);
  ASSERT_EQ(gradwire({"export", "results/small/model.bin", "x.npy"}).code, 0);
  const std::vector<double> want = read_model(path() / "results/small/model.bin");
  for (const char* start : {"results/small/model.bin", "x.npy"}) {
    const auto r = gradwire({"run", "run.toml", "--quiet", "--overwrite", "--out", "warm", "--set",
                             std::string("run.x0=file:") + start, "--set", "run.rounds=0"});
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(read_model(path() / "warm/model.bin"), want) << start;
    const auto e = gradwire({"evaluate", start, "run.toml", "--json"});
    EXPECT_EQ(e.code, 0) << e.err;
  }
}

TEST_F(Export, MakesRunsNameTheLineOfAFileThatIsNotAModel) {
  ASSERT_TRUE(save_npy<double>(path() / "nan.npy", std::vector<double>{1, std::nan(""), 3, 4, 5}));
  ASSERT_TRUE(save_npy<double>(path() / "few.npy", std::vector<double>{1}));
  folder_.write("bad.bin", "GWMODEL1 but no more");
  folder_.write("foreign.npz", std::string("PK\x03\x04", 4));
  for (const char* start : {"nan.npy", "few.npy", "bad.bin", "foreign.npz", "absent.npy", "."}) {
    std::string toml = kExportedRun;
    toml.replace(toml.find("normal"), 6, std::string("file:") + start);
    folder_.write("run.toml", toml);
    const auto r = gradwire({"run", "run.toml", "--quiet"});
    EXPECT_EQ(r.code, 2) << start << " " << r.err;
    EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
    EXPECT_NE(r.err.find("run.toml:13: "), std::string::npos) << r.err;
    EXPECT_FALSE(fs::exists(path() / "results/small")) << start;
  }
}

TEST_F(Export, LetsRunsReportDivergenceAtTheirStart) {
  ASSERT_TRUE(save_npy<double>(path() / "far.npy", std::vector<double>(5, 1e200)));  // its square is infinite
  folder_.write("run.toml", kExportedRun);
  const auto r =
      gradwire({"run", "run.toml", "--quiet", "--set", "run.x0=file:far.npy", "--set", "name=small"});
  EXPECT_EQ(r.code, 1) << r.err;
  EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
  EXPECT_NE(r.err.find("gradwire: small: diverged at round 0: "), std::string::npos) << r.err;
  EXPECT_EQ(read_model(path() / "results/small/model.bin"), std::vector<double>(5, 1e200));
  EXPECT_NE(read_file(path() / "results/small/summary.json").find("\"outcome\": \"diverged\""),
            std::string::npos);
}

TEST_F(Export, FailsInOneLineAndKeepsExistingFiles) {
  folder_.write("bad.bin", "GWMODEL1 but no more");
  folder_.write("kept.npy", "mine");
  write_model<double>(path() / "good.bin", std::vector<double>{1});
  struct Case {
    std::string model, out, said;
    int code;
  };
  for (const Case& c :
       {Case{"bad.bin", "kept.npy", "bad.bin", 2}, Case{"absent.bin", "kept.npy", "absent.bin", 2},
        Case{"good.bin", "model.pt", "must end in .npy", 2}, Case{"good.bin", "kept", ".raw", 2},
        Case{".", "kept.npy", ".", 2}, Case{"good.bin", "no/such/x.npy", "no/such/x.npy", 1}}) {
    const auto r = gradwire({"export", c.model, c.out});
    EXPECT_EQ(r.code, c.code) << c.model << " " << r.err;
    EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
    EXPECT_NE(r.err.find(c.said), std::string::npos) << r.err;
    EXPECT_EQ(r.out, "");
  }
  EXPECT_EQ(read_file(path() / "kept.npy"), "mine");
  EXPECT_FALSE(fs::exists(path() / "model.pt"));
}

}  // namespace
}  // namespace gradwire
