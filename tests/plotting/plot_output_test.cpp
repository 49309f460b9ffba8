// Formats, widths and labels of figures.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>
#include <zlib.h>

#include "algorithms/algorithms.h"
#include "compressors/compressor.h"
#include "plotting/plot.h"
#include "plotting/plot_names.h"
#include "plotting/plot_width.h"
#include "report/columns.h"
#include "report/results_dir.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

class PlotOutput : public ::testing::Test {
 protected:
  PlotOutput() {
    write_run("gd", "gd", "identity", 1);
    for (int seed = 1; seed <= 2; ++seed)
      write_run("ef21=tuned/s" + std::to_string(seed), "ef21", "topk:k=1", seed);
  }
  void write_run(const std::string& name, const std::string& algorithm, const std::string& compressor,
                 int seed) const {
    folder_.write(name + "/config.toml",
                  "name = \"" + fs::path(name).filename().string() + "\"\nseed = " + std::to_string(seed) +
                      "\n[problem]\nkind = \"quadratic\"\ndim = 5\n[algorithm]\nname = \"" + algorithm +
                      "\"\ncompressor = \"" + compressor + "\"\n");
    std::string text = metrics_header() + "\n";
    for (std::uint32_t k = 0; k <= 20; ++k) {
      RoundRecord r;
      r.round = k;
      r.grad_norm_sq = std::exp(-0.2 * seed * k);
      r.loss = *r.grad_norm_sq;
      r.bits_up = 64 * k;
      text += metrics_line(r) + "\n";
    }
    folder_.write(name + "/metrics.csv", text);
  }
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  std::vector<std::string> written(const PlotRequest& more) const {
    PlotRequest request = more;
    if (request.folders.empty()) request.folders = {path("gd"), path("ef21=tuned")};
    std::vector<std::string> names;
    for (const fs::path& file : plot_command(request)) names.push_back(file.filename().string());
    return names;
  }
  std::string error_of(const PlotRequest& request) const {
    try {
      written(request);
    } catch (const UsageError& error) {
      EXPECT_EQ(lines_of(error.what()).size(), 1u);
      return error.what();
    }
    return "no error";
  }

  TemporaryFolder folder_;
};
using Names = std::vector<std::string>;

bool has_program(const char* name) {
  return std::system((std::string("command -v ") + name + " > /dev/null 2>&1").c_str()) == 0;
}
bool has_converter() { return has_program("rsvg-convert") || has_program("inkscape"); }

// Returns the width of an SVG in points.
double width_of(const std::string& svg) {
  const std::size_t at = svg.find("width=\"") + 7;
  return std::stod(svg.substr(at));
}

// ---- names ----

TEST(PlotNames, AreThoseOfPapers) {
  EXPECT_EQ(algorithm_title("ef21"), "EF21");
  EXPECT_EQ(algorithm_title("ef21_sgdm"), "EF21-SGDM");
  EXPECT_EQ(algorithm_title("fedavg"), "FedAvg");
  EXPECT_EQ(algorithm_title("my_own"), "my_own") << "not an algorithm of the list";
  std::set<std::string> all;
  for (const AlgorithmInfo& algorithm : all_algorithms()) {
    const std::string title = algorithm_title(algorithm.traits.name);
    EXPECT_EQ(title.find('_'), std::string::npos) << title;
    EXPECT_TRUE(all.insert(title).second) << title;
  }
  EXPECT_EQ(compressor_title("topk:k=1"), "Top-1");
  EXPECT_EQ(compressor_title("topk:k=1%"), "Top-1%");
  EXPECT_EQ(compressor_title("randk:k=5,scaled=false"), "Rand-5, scaled=false");
  EXPECT_EQ(compressor_title("natural(randk:k=5)"), "natural(Rand-5)");
  EXPECT_EQ(compressor_title("induced(topk:k=5,randk:k=5)"), "induced(Top-5, Rand-5)");
  EXPECT_EQ(compressor_title("qsgd:s=4,p=2"), "QSGD s=4, p=2");
  EXPECT_EQ(compressor_title("sign"), "sign");
}

// ---- widths ----

TEST(PlotWidth, AcceptsUnitsOfPages) {
  EXPECT_NEAR(parse_width("234pt"), 234 * 72 / 72.27, 1e-9);
  EXPECT_NEAR(parse_width("8.5cm"), 8.5 / 2.54 * 72, 1e-9);
  EXPECT_NEAR(parse_width("85mm"), parse_width("8.5cm"), 1e-9);
  EXPECT_NEAR(parse_width("3.25in"), 234, 1e-9);
  for (const char* wrong : {"", "234", "pt", "234px", "-3in", "1e9in", "5pt", "nan", "12 cm"})
    EXPECT_THROW(parse_width(wrong), UsageError) << wrong;
}

TEST_F(PlotOutput, HasTheWidthOnThePage) {
  for (const char* width : {"234pt", "12cm", "7in"}) {
    written({.out = path("f.svg"), .width = width, .panels = {"loss:bits", "grad_norm_sq:rounds"}});
    EXPECT_NEAR(width_of(read_file(path("f.svg"))), parse_width(width), 0.02) << width;
  }
  written({.out = path("wide.svg"), .panels = {"loss:bits", "grad_norm_sq:rounds"}});
  EXPECT_EQ(width_of(read_file(path("wide.svg"))), 2 * (290 + 62 + 16));
}

TEST(PlotWidth, PutsPanelsBelowEachOtherIfTheyWouldBeNarrow) {
  Figure figure;
  figure.columns = 2;
  figure.width = parse_width("234pt");
  EXPECT_EQ(panel_size(figure, 78).columns, 1u);
  figure.width = parse_width("7in");
  const PanelSize wide = panel_size(figure, 78);
  EXPECT_EQ(wide.columns, 2u);
  EXPECT_NEAR(2 * (wide.width + 78) * wide.scale, figure.width, 1e-9);
}

// ---- formats ----

TEST_F(PlotOutput, HasTheFormatOfTheEnding) {
  EXPECT_EQ(written({.out = path("f.svg")}), (Names{"f.svg", "f.py"}));
  EXPECT_EQ(written({.out = path("g.tex")}), (Names{"g.tex", "g.dat"}));
  EXPECT_EQ(written({.out = path("h.csv")}), (Names{"h.csv"}));
  EXPECT_EQ(read_file(path("h.csv")).substr(0, 11), "panel,curve");
  EXPECT_EQ(written({.out = path("i.py")}), (Names{"i.py"}));
  EXPECT_NE(error_of({.out = path("f.jpg")}).find("must end in .svg, .pdf, .png, .tex, .csv or .py"),
            std::string::npos);
  if (!has_converter()) GTEST_SKIP() << "no rsvg-convert, no inkscape";
  EXPECT_EQ(written({.out = path("f.pdf"), .csv = true}), (Names{"f.pdf", "f.csv"}));
  EXPECT_EQ(read_file(path("f.pdf")).substr(0, 5), "%PDF-");
  EXPECT_EQ(written({.out = path("f.png")}), (Names{"f.png"}));
  EXPECT_EQ(error_of({.out = path("f.pdf")}), "no error") << "gradwire replaces its own files";
  EXPECT_EQ(error_of({.out = path("f.png")}), "no error");
  folder_.write("mine.pdf", "%PDF-1.4\n" + std::string(3000, 'x') + "\n%%EOF\n");
  EXPECT_NE(error_of({.out = path("mine.pdf")}).find("was not written by gradwire"), std::string::npos);
}

TEST_F(PlotOutput, KeepsAScriptThatOnlyImportsGradwire) {
  folder_.write("mine.py", "import gradwire as gw\n");
  EXPECT_NE(error_of({.out = path("mine.svg")}).find("mine.py: exists and was not written by gradwire"),
            std::string::npos);
  EXPECT_EQ(read_file(path("mine.py")), "import gradwire as gw\n");
  EXPECT_FALSE(fs::exists(path("mine.svg")));
}

std::uint32_t number_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t k = 0; k < 4; ++k) value = value << 8 | static_cast<unsigned char>(bytes[at + k]);
  return value;
}

TEST_F(PlotOutput, WritesAPngWhoseChunksAreValid) {
  if (!has_converter()) GTEST_SKIP() << "no rsvg-convert, no inkscape";
  written({.out = path("f.png"), .width = "3in"});
  const std::string bytes = read_file(path("f.png"));
  std::vector<std::string> types;
  for (std::size_t at = 8; at + 12 <= bytes.size();) {
    const std::uint32_t length = number_at(bytes, at);
    ASSERT_LE(at + 12 + length, bytes.size());
    types.push_back(bytes.substr(at + 4, 4));
    const auto* const content = reinterpret_cast<const Bytef*>(bytes.data() + at + 4);
    EXPECT_EQ(number_at(bytes, at + 8 + length), crc32(0, content, length + 4)) << types.back();
    at += 12 + length;
  }
  ASSERT_GE(types.size(), 3u);
  EXPECT_EQ(types[types.size() - 2], "tEXt");
  EXPECT_EQ(types.back(), "IEND");
  EXPECT_NEAR(number_at(bytes, 16), 3 * 300, 2) << "dots";
}

TEST_F(PlotOutput, NamesTheMissingProgram) {
  const ScopedEnvironment path_without_programs("PATH", folder_.path().c_str());
  const std::string error = error_of({.out = path("f.pdf")});
  EXPECT_NE(error.find("f.pdf: needs rsvg-convert or inkscape, and neither is in $PATH"), std::string::npos)
      << error;
  EXPECT_NE(error.find("apt install librsvg2-bin"), std::string::npos) << error;
  EXPECT_FALSE(fs::exists(path("f.pdf")));
}

TEST_F(PlotOutput, SaysWhatAFailedProgramSaid) {
  const fs::path fake = folder_.write("bin/rsvg-convert", "#!/bin/sh\necho no fonts here >&2\nexit 3\n");
  fs::permissions(fake, fs::perms::owner_all);
  const ScopedEnvironment programs("PATH", (path("bin").string() + ":/usr/bin:/bin").c_str());
  try {
    written({.out = path("f.png")});
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("could not convert the figure: no fonts here"),
              std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(fs::exists(path("f.png")));
}

// ---- labels ----

TEST_F(PlotOutput, HasTheLabelsThatTheUserGives) {
  written(
      {.out = path("f.svg"),
       .labels = {path("gd").string() + "=no compression", path("ef21=tuned").string() + "=EF21, k = 1"}});
  const std::string svg = read_file(path("f.svg"));
  EXPECT_NE(svg.find(">no compression<"), std::string::npos);
  EXPECT_NE(svg.find(">EF21, k = 1<"), std::string::npos);
  EXPECT_EQ(svg.find(">GD<"), std::string::npos);
  written({.out = path("f.svg"), .labels = {path("ef21=tuned/s2/").string() + "=of one seed"}});
  EXPECT_NE(read_file(path("f.svg")).find(">of one seed<"), std::string::npos);
  EXPECT_NE(read_file(path("f.svg")).find(">GD<"), std::string::npos);
}

TEST_F(PlotOutput, RejectsLabelsOfNoOrSeveralCurves) {
  const auto error = [&](const std::string& label) {
    return error_of({.out = path("f.svg"), .labels = {label}});
  };
  EXPECT_NE(error("EF21").find("write it as DIR=TEXT"), std::string::npos);
  EXPECT_NE(error("=EF21").find("write it as DIR=TEXT"), std::string::npos);
  EXPECT_NE(error(path("nothing").string() + "=a").find("no run of the figure is in"), std::string::npos);
  EXPECT_NE(error(folder_.path().string() + "=a").find("has several curves"), std::string::npos);
}

}  // namespace
}  // namespace gradwire
