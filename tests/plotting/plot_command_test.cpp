// gradwire plot: runs, curves, files and errors.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

#include "plotting/plot.h"
#include "report/columns.h"
#include "report/metrics_table.h"
#include "report/results_dir.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

std::string whole_text(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct WrittenRun {
  std::string algorithm = "ef21", compressor = "topk:k=1", more = {};  // `more` is added to [algorithm]
  int seed = 1;
  bool accuracy = false, lyapunov = false;
  std::string problem = "[problem]\nkind = \"quadratic\"\ndim = 5\nlambda = 0.1\n";
};

void write_run(const TemporaryFolder& folder, const std::string& name, const WrittenRun& what) {
  folder.write(name + "/config.toml", "name = \"" + fs::path(name).filename().string() +
                                          "\"\nseed = " + std::to_string(what.seed) + "\n" + what.problem +
                                          "[algorithm]\nname = \"" + what.algorithm + "\"\ncompressor = \"" +
                                          what.compressor + "\"\n" + what.more);
  std::string text = metrics_header() + "\n";
  for (std::uint32_t k = 0; k <= 20; ++k) {
    RoundRecord r;
    r.round = k;
    r.grad_norm_sq = what.seed * std::exp(-0.1 * k);
    r.loss = 1 + *r.grad_norm_sq;
    r.bits_up = 64 * k;
    r.bits_down = 640 * k;
    r.seconds = 0.01 * k;
    if (what.lyapunov) {
      r.lyapunov = *r.grad_norm_sq;
      r.lyapunov_bound = 2 * *r.grad_norm_sq;
    }
    if (what.accuracy) r.accuracy = 1 - 0.1 * *r.grad_norm_sq;
    text += metrics_line(r) + "\n";
  }
  folder.write(name + "/metrics.csv", text);
}

std::string usage_error(const PlotRequest& request) {
  try {
    plot_command(request);
  } catch (const UsageError& error) {
    EXPECT_EQ(times_in(error.what(), "\n"), 0u);
    return error.what();
  }
  return "no error";
}

std::vector<PlotCurve> curves_of(const TemporaryFolder& folder, std::initializer_list<const char*> names) {
  std::vector<fs::path> paths;
  for (const char* name : names) paths.push_back(folder.path() / name);
  return make_curves(read_runs(find_runs(paths), {}));
}
std::vector<std::string> labels_of(const std::vector<PlotCurve>& curves) {
  std::vector<std::string> labels;
  for (const PlotCurve& curve : curves) labels.push_back(curve.label);
  return labels;
}
using Labels = std::vector<std::string>;

// ---- curves and labels ----

TEST(PlotCurves, OmitDefaultParametersFromLabels) {
  const TemporaryFolder folder;
  write_run(folder, "d", {.algorithm = "marina", .compressor = "randk:k=10,scaled=true"});
  write_run(folder, "e", {.compressor = "randk:k=10,scaled=false"});
  write_run(folder, "f", {.algorithm = "gd", .compressor = "identity"});
  EXPECT_EQ(labels_of(curves_of(folder, {"d", "e", "f"})),
            (Labels{"MARINA, Rand-10", "EF21, Rand-10, scaled=false", "GD"}));
}

TEST(PlotCurves, MergeRunsThatDifferOnlyInTheSeed) {
  const TemporaryFolder folder;
  for (int seed = 1; seed <= 4; ++seed) write_run(folder, "all/s" + std::to_string(seed), {.seed = seed});
  write_run(folder, "all/gd", {.algorithm = "gd", .compressor = "identity", .seed = 3});
  const auto curves = curves_of(folder, {"all"});
  EXPECT_EQ(labels_of(curves), (Labels{"GD", "EF21, Top-1"}));
  EXPECT_EQ(curves[1].runs.size(), 4u);
}

TEST(PlotCurves, SeparateRunsThatRepeatASeed) {
  const TemporaryFolder folder;
  write_run(folder, "b", {});
  write_run(folder, "c", {});
  EXPECT_EQ(labels_of(curves_of(folder, {"b", "c"})), (Labels{"b", "c"}));
}

TEST(PlotCurves, NameTheKeysThatDifferInLabels) {
  const TemporaryFolder folder;
  write_run(folder, "a", {.more = "step_size = 0.1\n"});
  write_run(folder, "b", {.more = "step_size = 0.2\n"});
  write_run(folder, "c", {.algorithm = "gd", .compressor = "identity", .more = "step_size = 0.5\n"});
  EXPECT_EQ(labels_of(curves_of(folder, {"a", "b"})), (Labels{"step_size = 0.1", "step_size = 0.2"}));
  EXPECT_EQ(labels_of(curves_of(folder, {"a", "b", "c"})),
            (Labels{"EF21, Top-1, step_size = 0.1", "EF21, Top-1, step_size = 0.2", "GD"}));
  write_run(folder, "d", {.problem = "[problem]\nkind = \"quadratic\"\ndim = 7\nlambda = 0.1\n"});
  write_run(folder, "e", {.algorithm = "gd", .compressor = "identity"});
  EXPECT_EQ(labels_of(curves_of(folder, {"d", "e"})), (Labels{"EF21, Top-1, dim = 7", "GD, dim = 5"}));
}

TEST(PlotCurves, NameTheLengthOfARunOnlyIfNothingElseDiffers) {
  const TemporaryFolder folder;
  write_run(folder, "a", {.more = "[run]\nrounds = 10\n"});
  write_run(folder, "b", {.more = "[run]\nrounds = 20\n"});
  write_run(folder, "c", {.algorithm = "gd", .compressor = "identity", .more = "[run]\nrounds = 30\n"});
  EXPECT_EQ(labels_of(curves_of(folder, {"b", "c"})), (Labels{"EF21, Top-1", "GD"}));
  EXPECT_EQ(labels_of(curves_of(folder, {"a", "b"})), (Labels{"rounds = 10", "rounds = 20"}));
}

TEST(PlotCurves, ShowEnoughDigitsToDistinguishNumbers) {
  const TemporaryFolder folder;
  write_run(folder, "a", {.more = "step_size = 0.013046555188\n"});
  write_run(folder, "b", {.more = "step_size = 0.26093110376\n"});
  write_run(folder, "c", {.more = "step_size = 0.26093110377\n"});
  EXPECT_EQ(labels_of(curves_of(folder, {"a", "b"})), (Labels{"step_size = 0.01305", "step_size = 0.2609"}));
  EXPECT_EQ(labels_of(curves_of(folder, {"b", "c"})),
            (Labels{"step_size = 0.26093110376", "step_size = 0.26093110377"}));
}

TEST(PlotCurves, NameMultiplesOfTheorysStepWithoutTheirKey) {
  const TemporaryFolder folder;
  write_run(folder, "a", {.more = "step_size = \"theory\"\n"});
  write_run(folder, "b", {.more = "step_size = \"theory*4\"\n"});
  write_run(folder, "c", {.more = "step_size = \"theory*4\"\nserver_step_size = \"theory*2\"\n"});
  EXPECT_EQ(labels_of(curves_of(folder, {"a", "b"})), (Labels{"theory", "theory*4"}));
  EXPECT_EQ(labels_of(curves_of(folder, {"a", "b", "c"}))[2],
            "step_size = theory*4, server_step_size = theory*2");
}

TEST(PlotCurves, MergeStepSizesThatTheoryChoseForEachSeed) {
  const TemporaryFolder folder;
  write_run(folder, "a", {.more = "step_size = 0.11\n", .seed = 1});
  write_run(folder, "b", {.more = "step_size = 0.12\n", .seed = 2});
  EXPECT_EQ(curves_of(folder, {"a", "b"}).size(), 2u);
  for (const char* name : {"a", "b"})
    folder.write(std::string(name) + "/summary.json", R"({"asked": {"algorithm.step_size": "\"theory\""}})");
  EXPECT_EQ(labels_of(curves_of(folder, {"a", "b"})), (Labels{"EF21, Top-1"}));
  for (const char* damaged :
       {"", "{", "[1]", R"({"asked": 3})", R"({"asked": {"algorithm.step_size": [1]}})"}) {
    folder.write("b/summary.json", damaged);
    EXPECT_EQ(curves_of(folder, {"a", "b"}).size(), 2u) << damaged;
  }
}

// ---- files ----

TEST(Plot, DrawsSeveralPanelsOfAnyColumns) {
  const TemporaryFolder folder;
  write_run(folder, "runs/a", {});
  write_run(folder, "runs/b", {.algorithm = "gd"});
  const auto files =
      plot_command({.folders = {folder.path() / "runs"},
                    .out = folder.path() / "f.svg",
                    .panels = {"loss:total_bits", "grad_norm_sq:seconds", "gap", "replies:round"},
                    .f_star = 0.5,
                    .tikz = true});
  ASSERT_EQ(files.size(), 4u);
  const std::string svg = whole_text(files[0]), tex = whole_text(files[2]);
  for (const char* label : {"loss f(x)", "both ways", "time (s)", "f(x) − f*", "replies", "rounds"})
    EXPECT_NE(svg.find(label), std::string::npos) << label;
  EXPECT_EQ(times_in(svg, "<clipPath"), 4u);
  EXPECT_EQ(times_in(tex, "\\nextgroupplot"), 4u);
  EXPECT_NE(tex.find("{f.dat}"), std::string::npos);
  EXPECT_TRUE(fs::exists(files[1]) && fs::exists(files[3]));
}

TEST(Plot, MeasuresTheGapToTheSmallestLossIfTheProblemIsNotConvex) {
  const TemporaryFolder folder;
  const ScopedEnvironment cache("XDG_CACHE_HOME", (folder.path() / "cache").c_str());
  const std::string mlp = "[problem]\nkind = \"mlp\"\ndata = \"digits\"\n";
  write_run(folder, "runs/a", {.problem = mlp});
  const fs::path svg =
      plot_command({.folders = {folder.path() / "runs"}, .out = folder.path() / "f.svg", .y = "gap"})[0];
  EXPECT_NE(whole_text(svg).find("smallest loss of all runs"), std::string::npos);
}

TEST(Plot, RejectsImpossibleRequestsAndForeignFiles) {
  const TemporaryFolder folder;
  write_run(folder, "runs/a", {});
  const fs::path a = folder.path() / "runs/a";
  const auto error_has = [](const PlotRequest& request, const char* part) {
    const std::string error = usage_error(request);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  fs::create_directory(folder.path() / "nothing");
  error_has({.folders = {folder.path() / "nothing"}}, "has no results of a run, nor have its folders");
  error_has({.folders = {folder.path() / "absent"}}, "absent: no such folder");
  error_has({.folders = {a}, .out = "x.jpg"}, "the name must end in .svg, .pdf");
  error_has({.folders = {a}, .x = "rouns"}, "did you mean 'rounds'");
  error_has({.folders = {a}, .x = "sim_seconds"}, "has no sim_seconds; choose another column");
  error_has({.folders = {a}, .y = "accuracy"}, "has no accuracy");
  error_has({.folders = {a}, .panels = {"loss:"}}, "write it as Y:X");
  error_has({.folders = {a}, .panels = {"los:bits"}}, "did you mean 'loss'");
  error_has({.folders = {a}, .y = "loss", .panels = {"loss"}}, "with --panel each panel has its own y");
  error_has({.folders = {a}, .band = "wide"}, "--band");
  const fs::path mine = folder.write("mine.svg", "<svg>a drawing of my own</svg>");
  error_has({.folders = {a}, .out = mine}, "was not written by gradwire");
  folder.write("empty/config.toml", "name = \"e\"\n");
  folder.write("empty/metrics.csv", metrics_header() + "\n");
  error_has({.folders = {folder.path() / "empty"}}, "has no rows");
  EXPECT_EQ(usage_error({.folders = {a}}), "no error");
  EXPECT_EQ(usage_error({.folders = {a}}), "no error") << "gradwire replaces its own files";
}

TEST(Plot, NamesAHostileMetricsFileInOneLine) {
  const TemporaryFolder folder;
  write_run(folder, "a", {});
  const std::string header = metrics_header() + "\n", row = metrics_line(RoundRecord{}) + "\n";
  const std::vector<std::pair<std::string, std::string>> files = {
      {"", ":1: not the header"},
      {"round,loss\n1,2\n", ":1: not the header"},
      {std::string(1000, ',') + "\n", ":1: not the header"},
      {std::string(3 << 20, 'x'), ":1: a line of more than 64 KB"},
      {header + row + "1,2,3\n", ":3: not a line of numbers"},
      {header + row.substr(0, row.size() - 1) + ",7\n", ":2: not a line of numbers"},
      {header + "zero" + row, ":2: not a line of numbers"},
      {header + std::string(100, '\0') + "\n", ":2: not a line of numbers"},
      {header + row + std::string(200000, '1') + "\n", ":3: a line of more than 64 KB"}};
  for (const auto& [text, trouble] : files) {
    folder.write("a/metrics.csv", text);
    try {
      plot_command({.folders = {folder.path() / "a"}});
      ADD_FAILURE() << "no error: " << trouble;
    } catch (const std::exception& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("metrics.csv"), std::string::npos) << what;
      EXPECT_NE(what.find(trouble), std::string::npos) << what;
      EXPECT_EQ(times_in(what, "\n"), 0u);
    }
  }
}

TEST(MetricsTable, ReadsColumnsByNameAndIgnoresOthers) {
  const TemporaryFolder folder;
  const std::string row = [] {
    RoundRecord record;
    record.round = 3;
    return metrics_line(record);
  }();
  const fs::path file = folder.write("metrics.csv", metrics_header() + ",of_a_later_version,remark\r\n" +
                                                        row + ",2.5,a word\r\n" + row + ",,\n" + row + ",9");
  const std::vector<std::string> wanted = {"of_a_later_version", "round", "absent"};
  const MetricsTable table = read_metrics_table(file, wanted);
  EXPECT_EQ(table.rows, 2u) << "the last line is still being written";
  EXPECT_EQ((*table.column("round"))[1], 3);
  EXPECT_EQ((*table.column("of_a_later_version"))[0], 2.5);
  EXPECT_TRUE(std::isnan((*table.column("of_a_later_version"))[1]));
  EXPECT_EQ(table.column("absent"), nullptr);
  EXPECT_EQ(table.column("loss"), nullptr) << "not asked for";
  EXPECT_TRUE(table.has("loss"));
}

// ---- panels by a key ----

const std::string kFourFeatures = "[problem]\nkind = \"logistic\"\ndata = \"libsvm:/data/ten\"\ndim = 4\n";
const std::string kNineFeatures = "[problem]\nkind = \"logistic\"\ndata = \"libsvm:/data/two\"\ndim = 9\n";

// Writes runs of two algorithms on two data sets. The data sets also differ in the number of features, and
// the runs of ef21 in the step.
void write_two_by_two(const TemporaryFolder& folder) {
  write_run(folder, "runs/a", {.more = "step_size = 0.1\n", .problem = kNineFeatures});
  write_run(folder, "runs/b", {.more = "step_size = 0.4\n", .problem = kFourFeatures});
  for (const bool is_nine : {true, false})
    write_run(folder, is_nine ? "runs/c" : "runs/d",
              {.algorithm = "gd",
               .compressor = "identity",
               .more = "step_size = 0.2\n",
               .problem = is_nine ? kNineFeatures : kFourFeatures});
}

TEST(PlotBy, DrawsAPanelForEachValueAndTheSameCurvesInAll) {
  const TemporaryFolder folder;
  write_two_by_two(folder);
  const std::vector<fs::path> paths = {folder.path() / "runs"};
  const std::vector<std::string> wanted = {"grad_norm_sq", "bits_up"};
  std::vector<PlotRun> runs = read_runs(find_runs(paths), wanted);
  const std::vector<PlotAxes> axes = usual_axes(runs, nullptr);
  const Figure f = make_figure(runs, axes, std::nullopt, {"problem.data", {"algorithm.step_size"}});
  EXPECT_EQ(labels_of(f.curves), (Labels{"EF21, Top-1", "GD"}))
      << "dim depends on the data and is not in the label";
  ASSERT_EQ(f.panels.size(), 2u);
  EXPECT_EQ(f.panels[0].title, "data = ten");
  EXPECT_EQ(f.panels[1].title, "data = two");
  for (const PlotPanel& panel : f.panels)
    for (const Series& series : panel.series) EXPECT_EQ(series.x.size(), 21u);
  EXPECT_EQ(f.note, "") << "two data sets are not two seeds";
  EXPECT_EQ(make_figure(runs, axes, std::nullopt, {"problem.data", {}}).curves.size(), 3u)
      << "a different step makes another curve unless it is in `aside`";
}

TEST(PlotBy, OmitsCurvesWithoutRunsFromAPanel) {
  const TemporaryFolder folder;
  write_run(folder, "runs/a", {.problem = kNineFeatures});
  write_run(folder, "runs/b", {.problem = kFourFeatures});
  write_run(folder, "runs/c", {.algorithm = "gd", .compressor = "identity", .problem = kFourFeatures});
  const auto files = plot_command({.folders = {folder.path() / "runs"},
                                   .out = folder.path() / "f.svg",
                                   .tikz = true,
                                   .keys = {"problem.data", {}}});
  const std::string svg = whole_text(files[0]), tex = whole_text(files[2]);
  EXPECT_EQ(times_in(svg, "<clipPath"), 2u);
  EXPECT_EQ(times_in(svg, "stroke-dasharray"), 2u) << "gd: in the legend and in one panel";
  EXPECT_EQ(times_in(svg, "font-weight"), 2u);
  EXPECT_NE(tex.find("title={data = ten}"), std::string::npos);
}

TEST(PlotBy, GroupsCurvesByWhatDiffersWithinEachAlgorithm) {
  const TemporaryFolder folder;
  for (const std::string step : {"0.1", "0.4"}) {
    write_run(folder, "runs/a" + step, {.more = "step_size = " + step + "\ninit = \"gradient\"\n"});
    write_run(
        folder, "runs/b" + step,
        {.algorithm = "diana", .compressor = "randk:k=1", .more = "step_size = " + step + "\nalpha = 0.5\n"});
  }
  const std::vector<fs::path> paths = {folder.path() / "runs"};
  const std::vector<std::string> wanted = {"grad_norm_sq", "bits_up"};
  const std::vector<PlotRun> runs = read_runs(find_runs(paths), wanted);
  const Figure f = make_figure(runs, usual_axes(runs, nullptr), std::nullopt, {"algorithm.name", {}});
  EXPECT_EQ(labels_of(f.curves), (Labels{"step_size = 0.1", "step_size = 0.4"}))
      << "init, compressor and alpha depend on the algorithm and are not in the label";
  ASSERT_EQ(f.panels.size(), 2u);
  for (const PlotPanel& panel : f.panels) EXPECT_EQ(panel.series.size(), 2u);
  const std::vector<PlotRun> two = {runs[0], runs[2]};
  EXPECT_EQ(
      labels_of(make_figure(two, usual_axes(two, nullptr), std::nullopt, {"algorithm.name", {}}).curves),
      Labels{"runs"});
}

TEST(PlotRuns, KeepTheOrderOfTheSweepFile) {
  const TemporaryFolder folder;
  for (const char* id : {"3a", "1b", "2c", "0d"}) write_run(folder, std::string("sweep/runs/") + id, {});
  folder.write("sweep/runs.csv", "run,outcome\n2c,finished\nabsent,finished\n1b,finished\n3a,diverged\n");
  const std::vector<fs::path> paths = {folder.path() / "sweep"};
  std::vector<std::string> found;
  for (const fs::path& run : find_runs(paths)) found.push_back(run.filename().string());
  EXPECT_EQ(found, (std::vector<std::string>{"2c", "1b", "3a", "0d"}))
      << "runs that the file does not name are last";
}

TEST(PlotBy, PutsPanelsOfOneValueIntoOneRow) {
  const TemporaryFolder folder;
  for (const int dim : {10, 9, 100})
    write_run(folder, "runs/" + std::to_string(dim),
              {.problem = "[problem]\nkind = \"quadratic\"\ndim = " + std::to_string(dim) + "\n"});
  const std::vector<fs::path> paths = {folder.path() / "runs"};
  const std::vector<std::string> wanted = {"loss", "grad_norm_sq", "bits_up", "round"};
  const std::vector<PlotAxes> axes = {
      {*find_column(x_columns(), "bits"), *find_column(y_columns(), "grad_norm_sq")},
      {*find_column(x_columns(), "rounds"), *find_column(y_columns(), "loss")}};
  const Figure f = make_figure(read_runs(find_runs(paths), wanted), axes, std::nullopt, {"problem.dim", {}});
  ASSERT_EQ(f.panels.size(), 6u);
  EXPECT_EQ(f.columns, 2u);
  EXPECT_EQ(labels_of(f.curves), Labels{"EF21, Top-1"});
  const Labels titles = {"dim = 9", "dim = 9", "dim = 10", "dim = 10", "dim = 100", "dim = 100"};
  for (std::size_t p = 0; p < 6; ++p) EXPECT_EQ(f.panels[p].title, titles[p]) << "numbers by size";
}

TEST(PlotBy, RejectsUnknownKeysAndTooManyPanels) {
  const TemporaryFolder folder;
  write_two_by_two(folder);
  EXPECT_NE(
      usage_error(
          {.folders = {folder.path() / "runs"}, .out = folder.path() / "f.svg", .keys = {"problem.date", {}}})
          .find("no run has this key; did you mean 'problem.data'"),
      std::string::npos);
  EXPECT_NE(usage_error({.folders = {folder.path() / "runs"},
                         .out = folder.path() / "f.svg",
                         .panels = std::vector<std::string>(7, "loss:bits"),
                         .keys = {"problem.data", {}}})
                .find("more than 12 panels"),
            std::string::npos);
}

// ---- the table ----

TEST(PlotTable, HasThePointsOfEachCurveAndReplacesOnlyItself) {
  const TemporaryFolder folder;
  write_run(folder, "runs/a", {});
  for (int seed = 1; seed <= 3; ++seed)
    write_run(folder, "runs/gd" + std::to_string(seed),
              {.algorithm = "gd", .compressor = "identity", .seed = seed});
  const PlotRequest request{.folders = {folder.path() / "runs"},
                            .out = folder.path() / "f.svg",
                            .panels = {"grad_norm_sq:rounds"},
                            .csv = true};
  const std::string table = whole_text(plot_command(request).back());
  // Straight lines on a logarithmic axis need two points each. The gradients of the seeds are 1, 2 and 3
  // times one curve.
  EXPECT_EQ(table,
            "panel,curve,x,y,low,high\n"
            "grad_norm_sq:rounds,\"EF21, Top-1\",0,1,,\n"
            "grad_norm_sq:rounds,\"EF21, Top-1\",20,0.13534,,\n"
            "grad_norm_sq:rounds,GD,0,2,1,3\n"
            "grad_norm_sq:rounds,GD,20,0.27067,0.13534,0.40601\n");
  EXPECT_EQ(usage_error(request), "no error") << "gradwire replaces its own file";
  folder.write("f.csv", "name,address\n");
  EXPECT_NE(usage_error(request).find("was not written by gradwire"), std::string::npos);
}

// ---- the script ----

int shell(const std::string& command) { return std::system((command + " > /dev/null 2>&1").c_str()); }

// A replacement for Matplotlib that only logs its curves.
constexpr const char* kFakePyplot = R"(
import sys
rcParams = {}
class Anything:
    def __getattr__(self, name): return lambda *a, **k: ([], [])
class Axes(Anything):
    def plot(self, x, y, **k):
        print("plot", k.get("label"), len(x), len(y), k.get("marker"), "%g %.4f %g %.4f" % (x[0], y[0], x[-1], y[-1]), file=log)
    def fill_between(self, x, low, high, **k): print("band", len(x), "%.4f %.4f" % (low[0], high[0]), file=log)
class Figure(Anything):
    def savefig(self, out, **k): open(out, "w").write("figure")
log = open(sys.argv[2], "w")
def subplots(rows, columns, **k): return Figure(), [[Axes() for _ in range(columns)]]
)";

TEST(Plot, WritesAScriptThatRunsFromAnyFolder) {
  if (shell("python3 --version") != 0) GTEST_SKIP() << "no python3";
  const TemporaryFolder folder;
  write_run(folder, "a", {.accuracy = true});
  for (int seed = 1; seed <= 3; ++seed)
    write_run(folder, "b/" + std::to_string(seed), {.algorithm = "gd", .seed = seed, .accuracy = true});
  folder.write("fake/matplotlib/__init__.py", "def use(name): pass\n");
  folder.write("fake/matplotlib/pyplot.py", kFakePyplot);
  fs::create_directory(folder.path() / "figures");
  plot_command({.folders = {folder.path() / "a", folder.path() / "b"},
                .out = folder.path() / "figures/both.svg",
                .panels = {"accuracy:rounds", "gap:total_bits"},
                .f_star = 1});
  const fs::path log = folder.path() / "log";
  const std::string out = (folder.path() / "both.png").string();
  ASSERT_EQ(shell("cd / && PYTHONPATH='" + (folder.path() / "fake").string() + "' python3 '" +
                  (folder.path() / "figures/both.py").string() + "' '" + out + "' '" + log.string() + "'"),
            0);
  const std::string noted = whole_text(log);
  EXPECT_EQ(times_in(noted, "plot EF21, Top-1 21 21 o "), 2u) << noted;
  EXPECT_EQ(times_in(noted, "plot GD, Top-1 21 21 s "), 2u) << noted;
  // The median of three seeds, whose gradients are 1, 2 and 3 times one curve.
  EXPECT_NE(noted.find("plot GD, Top-1 21 21 s 0 2.0000 14080 0.2707\n"), std::string::npos) << noted;
  EXPECT_EQ(times_in(noted, "band 21 1.0000 3.0000\n"), 1u) << noted;
  EXPECT_TRUE(fs::exists(out));
}

TEST(Plot, WritesAScriptThatDrawsTheBoundOfTheTheorem) {
  if (shell("python3 --version") != 0) GTEST_SKIP() << "no python3";
  const TemporaryFolder folder;
  write_run(folder, "a", {.lyapunov = true});
  folder.write("fake/matplotlib/__init__.py", "def use(name): pass\n");
  folder.write("fake/matplotlib/pyplot.py", kFakePyplot);
  plot_command(
      {.folders = {folder.path() / "a"}, .out = folder.path() / "f.svg", .panels = {"lyapunov:rounds"}});
  const fs::path log = folder.path() / "log";
  ASSERT_EQ(shell("PYTHONPATH='" + (folder.path() / "fake").string() + "' python3 '" +
                  (folder.path() / "f.py").string() + "' '" + (folder.path() / "f.png").string() + "' '" +
                  log.string() + "'"),
            0);
  const std::string noted = whole_text(log);
  EXPECT_EQ(times_in(noted, "plot None 21 21 None 0 2.0000 20 0.2707\n"), 1u) << noted;
  EXPECT_EQ(times_in(noted, "plot EF21, Top-1 21 21 o 0 1.0000 20 0.1353\n"), 1u) << noted;
}

TEST(Plot, WritesWellFormedSvg) {
  if (shell("python3 --version") != 0) GTEST_SKIP() << "no python3";
  const TemporaryFolder folder;
  write_run(folder, "a", {.algorithm = "<a> & 'b'"});
  const fs::path file = plot_command({.folders = {folder.path() / "a"}})[0];
  EXPECT_EQ(shell("python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' '" +
                  file.string() + "'"),
            0);
}

}  // namespace
}  // namespace gradwire
