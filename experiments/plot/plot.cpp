#include "experiments/plot/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "base/nearest.h"
#include "engine/dataset.h"
#include "experiments/optimum/f_star.h"
#include "experiments/plot/plot_script.h"
#include "experiments/plot/plot_svg.h"
#include "experiments/plot/plot_tikz.h"
#include "experiments/support/results_dir.h"
#include "proto/config/experiment_file.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostPanels = 12;

// Throws unless gradwire wrote the file: such a file says so in its first lines.
void check_overwrite(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return;
  std::array<char, 400> head{};
  std::ifstream(file, std::ios::binary).read(head.data(), head.size() - 1);
  if (std::string_view(head.data()).find("gradwire") == std::string_view::npos)
    throw UsageError(file.string() +
                     ": exists and was not written by gradwire; name another file with --out");
}

void write_drawing(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size())).flush();
  if (!out) throw UsageError(file.string() + ": cannot be written; is the folder there, and is there space?");
}

std::vector<fs::path> write_figure(const Figure& figure, const fs::path& svg, bool tikz) {
  const auto beside = [&](const char* extension) { return fs::path(svg).replace_extension(extension); };
  std::vector<fs::path> files = {svg, beside(".py")};
  if (tikz) files.insert(files.end(), {beside(".tex"), beside(".dat")});
  for (const fs::path& file : files) check_overwrite(file);
  write_drawing(files[0], draw_svg(figure));
  write_drawing(files[1], draw_script(figure, fs::absolute(svg).parent_path()));
  if (tikz) {
    const TikzFigure page = draw_tikz(figure, files[3].filename().string());
    write_drawing(files[2], page.tex);
    write_drawing(files[3], page.dat);
  }
  return files;
}

// All that any column needs, or could.
std::vector<std::string> columns_to_read(const PlotRequest& request) {
  std::set<std::string> names = {"round",   "loss",     "grad_norm_sq", "accuracy",
                                 "bits_up", "bytes_up", "lyapunov",     "lyapunov_bound"};
  const auto add = [&](const std::string& name) {
    bool known = false;
    for (const auto columns : {x_columns(), y_columns()})
      if (const PlotColumn* found = find_column(columns, name); found != nullptr) {
        names.insert(found->csv.begin(), found->csv.end());
        known = true;
      }
    if (!known) names.insert(name);
  };
  add(request.x);
  add(request.y);
  for (const std::string& panel : request.panels) {
    const std::size_t colon = panel.find(':');
    add(panel.substr(0, colon));
    if (colon != std::string::npos) add(panel.substr(colon + 1));
  }
  return {names.begin(), names.end()};
}

// The column of this name: one of `columns`, or else any that all files have.
PlotColumn column(std::span<const PlotColumn> columns, const std::string& name, const std::string& option,
                  std::span<const PlotRun> runs) {
  const PlotColumn* const found = find_column(columns, name);
  const PlotColumn chosen = found != nullptr ? *found : other_column(name);
  const auto lacks = [&](const PlotRun& run, const std::string& csv) {
    return run.metrics.column(csv) == nullptr;
  };
  if (found == nullptr &&
      std::all_of(runs.begin(), runs.end(), [&](const PlotRun& r) { return lacks(r, name); })) {
    std::vector<std::string> known;
    for (const PlotColumn& c : columns) known.emplace_back(c.name);
    throw UsageError(option + ": unknown column '" + name + "'" + suggest(name, known));
  }
  for (const PlotRun& run : runs)
    for (const std::string& csv : chosen.csv) {
      if (lacks(run, csv)) throw UsageError(option + ": " + run.file().string() + " has no column " + csv);
      const std::vector<double>& values = *run.metrics.column(csv);
      const bool may_diverge = csv == "loss" || csv == "grad_norm_sq";
      if (!may_diverge && std::all_of(values.begin(), values.end(), [](double v) { return std::isnan(v); }))
        throw UsageError(option + ": " + run.file().string() + " has no " + csv + "; choose another column");
    }
  return chosen;
}

std::vector<PlotAxes> axes_of(const PlotRequest& request, std::span<const PlotRun> runs) {
  const auto x_named = [&](const std::string& name, const std::string& option) {
    return column(x_columns(), name, option, runs);
  };
  const PlotColumn usual_x =
      request.x.empty() ? *find_column(x_columns(), "bits") : x_named(request.x, "--x " + request.x);
  if (!request.panels.empty()) {
    if (!request.y.empty())
      throw UsageError("--y: with --panel each panel says its own; write --panel " + request.y + " for it");
    if (request.panels.size() > kMostPanels)
      throw UsageError("--panel: a figure has " + std::to_string(kMostPanels) +
                       " panels at most; draw two figures");
    std::vector<PlotAxes> axes;
    for (const std::string& panel : request.panels) {
      const std::string option = "--panel " + panel;
      const std::size_t colon = panel.find(':');
      if (colon == 0 || colon + 1 == panel.size())
        throw UsageError(option + ": write it as Y:X, as in loss:bits or grad_norm_sq:seconds");
      axes.push_back({colon == std::string::npos ? usual_x : x_named(panel.substr(colon + 1), option),
                      column(y_columns(), panel.substr(0, colon), option, runs)});
    }
    return axes;
  }
  if (request.y.empty()) return usual_axes(runs, request.x.empty() ? nullptr : &usual_x);
  return {{usual_x, column(y_columns(), request.y, "--y " + request.y, runs)}};
}

std::optional<Band> band_of(const std::string& name) {
  if (name.empty() || name == "auto") return std::nullopt;
  if (name == "quartiles") return Band::kQuartiles;
  if (name == "range") return Band::kRange;
  if (name == "none") return Band::kNone;
  throw UsageError("--band: 'auto', 'quartiles', 'range' or 'none', not '" + name + "'");
}

double smallest_loss(const PlotRun& run) {
  double smallest = INFINITY;
  for (const double loss : *run.metrics.column("loss"))
    if (std::isfinite(loss)) smallest = std::min(smallest, loss);
  return smallest;
}

// Sets f* of all runs. True: that of some is the smallest loss of all runs of their problem.
bool set_f_star(std::vector<PlotRun>& runs, const std::optional<double>& given) {
  if (given) {
    for (PlotRun& run : runs) run.f_star = given;
    return false;
  }
  FStars all(cache_folder());
  std::map<std::string, double> smallest;  // by problem
  std::vector<std::string> problems;
  for (PlotRun& run : runs) {
    try {
      FStars::OfRun found = all.of(run.folder / "config.toml");
      run.f_star = found.value;
      problems.push_back(std::move(found.problem));
    } catch (const DataError& error) {
      throw UsageError(run.folder.string() + ": f* cannot be computed: " + error.what() +
                       "; or give its value with --f-star");
    } catch (const ExperimentError& error) {
      throw UsageError(std::string("f* cannot be computed: ") + error.what() +
                       "; or give its value with --f-star");
    }
    const auto [at, is_new] = smallest.try_emplace(problems.back(), smallest_loss(run));
    if (!is_new) at->second = std::min(at->second, smallest_loss(run));
  }
  bool guessed = false;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (runs[r].f_star) continue;
    runs[r].f_star = smallest[problems[r]];
    guessed = true;
  }
  return guessed;
}

}  // namespace

std::vector<fs::path> plot_command(const PlotRequest& request) {
  const std::vector<fs::path> folders = find_runs(request.folders);
  fs::path out = request.out;
  if (out.empty()) out = folders.size() == 1 ? folders[0] / "plot.svg" : fs::path("plot.svg");
  if (out.extension() != ".svg")
    throw UsageError("--out " + out.string() +
                     ": the figure is an SVG: end the name in .svg; for PNG or PDF run the script beside it");
  const std::optional<Band> band = band_of(request.band);
  std::vector<PlotRun> runs = read_runs(folders, columns_to_read(request));
  std::vector<PlotAxes> axes = axes_of(request, runs);
  if (std::any_of(axes.begin(), axes.end(), [](const PlotAxes& a) { return a.y.gap; }) &&
      set_f_star(runs, request.f_star)) {
    for (PlotAxes& a : axes) {
      if (!a.y.gap) continue;
      a.y.label = "f(x) − smallest loss of all runs";
      a.y.tex = "$f(x)$ $-$ smallest loss of all runs";
    }
  }
  return write_figure(make_figure(std::move(runs), axes, band), out, request.tikz);
}

}  // namespace gradwire
