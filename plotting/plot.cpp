#include "plotting/plot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/suggest.h"
#include "base/word_list.h"
#include "config/experiment_file.h"
#include "engine/data/dataset.h"
#include "plotting/plot_files.h"
#include "plotting/plot_width.h"
#include "report/columns.h"
#include "report/results_dir.h"
#include "simulation/optimum/f_star.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostPanels = 12, kManyCurves = 12;

// Returns all columns that the figure needs or might need.
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

// Returns the column of this name: one of `columns`, or else any column that all files have.
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
      throw UsageError("--y: with --panel each panel has its own y; use --panel " + request.y + " instead");
    if (request.panels.size() > kMostPanels)
      throw UsageError("--panel: a figure has " + std::to_string(kMostPanels) +
                       " panels at most; draw several figures");
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

// Throws if no run has the key `keys.by`, or if the figure would have too many panels.
void check_by(const PlotKeys& keys, std::size_t axes, std::span<const PlotRun> runs) {
  if (keys.by.empty()) return;
  std::set<std::string> known;
  for (const PlotRun& run : runs)
    for (const auto& [key, value] : run.keys) known.insert(key);
  const std::vector<std::string> all(known.begin(), known.end());
  if (known.count(keys.by) == 0)
    throw UsageError("--by " + keys.by + ": no run has this key" + suggest(keys.by, all));
  if (axes * values_of_key(runs, keys.by).size() > kMostPanels)
    throw UsageError("--by " + keys.by + ": the figure would have more than " + std::to_string(kMostPanels) +
                     " panels; use fewer runs, or draw several figures");
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

// Sets f* of all runs. Returns true if f* of some runs is unknown; these get the smallest loss of all runs of
// their problem instead.
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
                       "; set its value with --f-star");
    } catch (const ExperimentError& error) {
      throw UsageError(std::string("f* cannot be computed: ") + error.what() +
                       "; set its value with --f-star");
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

// Returns where "DIR=TEXT" has the "=" after DIR, which may have further "=" in its name.
std::size_t end_of_folder(const std::string& label) {
  std::size_t end = label.find('=');
  std::error_code ignored;
  for (std::size_t at = end; at != std::string::npos; at = label.find('=', at + 1))
    if (fs::is_directory(label.substr(0, at), ignored)) end = at;
  if (end == std::string::npos || end == 0 || end + 1 == label.size())
    throw UsageError("--label " + label + ": write it as DIR=TEXT, as in 'results/ef21=EF21, tuned'");
  return end;
}

// Sets the label of the curve with the runs in DIR of "DIR=TEXT".
void set_label(Figure& figure, const std::string& label) {
  const std::size_t end = end_of_folder(label);
  const std::string folder = label.substr(0, end);
  std::error_code ignored;
  const auto path_of = [&](const fs::path& path) {
    fs::path whole = fs::weakly_canonical(path, ignored);
    return whole.has_filename() ? whole : whole.parent_path();
  };
  const fs::path wanted = path_of(folder);
  const auto is_in = [&](const PlotRun& run) {
    const fs::path own = path_of(run.folder);
    return std::mismatch(wanted.begin(), wanted.end(), own.begin(), own.end()).first == wanted.end();
  };
  PlotCurve* found = nullptr;
  for (PlotCurve& curve : figure.curves) {
    if (std::none_of(curve.runs.begin(), curve.runs.end(),
                     [&](std::size_t r) { return is_in(figure.runs[r]); }))
      continue;
    if (found != nullptr)
      throw UsageError("--label " + label + ": " + folder +
                       " has several curves; name the folder of one run");
    found = &curve;
  }
  if (found == nullptr)
    throw UsageError("--label " + label + ": no run of the figure is in " + folder +
                     "; name the folder of a run that the figure shows");
  found->label = label.substr(end + 1);
}

}  // namespace

std::string trouble_of_panel(const std::string& panel) {
  const std::size_t colon = std::min(panel.find(':'), panel.size());
  if (colon == 0 || colon + 1 >= panel.size())
    return "write a panel as Y:X, as in loss:bits or grad_norm_sq:seconds";
  std::vector<std::string> in_file;
  const RoundRecord record;
  metric_columns(record,
                 [&](std::string_view name, const auto&, std::string_view) { in_file.emplace_back(name); });
  for (const bool is_x : {false, true}) {
    const std::string name = is_x ? panel.substr(colon + 1) : panel.substr(0, colon);
    const std::span<const PlotColumn> columns = is_x ? x_columns() : y_columns();
    if (find_column(columns, name) != nullptr) continue;
    if (std::find(in_file.begin(), in_file.end(), name) != in_file.end()) continue;
    std::vector<std::string> known;
    for (const PlotColumn& c : columns) known.emplace_back(c.name);
    return "unknown column '" + name + "'" + suggest(name, known);
  }
  return "";
}

std::vector<fs::path> plot_command(const PlotRequest& request) {
  PlotKeys keys = request.keys;
  std::vector<std::string> tuned;
  const std::vector<fs::path> folders = find_runs(request.folders, request.all ? nullptr : &tuned);
  if (!tuned.empty() && request.log)
    request.log(
        LogLine("the figure has the best " + joined(tuned) + " of each algorithm; --all draws all runs"));
  // An algorithm is one curve, although its best step may differ between panels.
  if (!keys.by.empty()) keys.aside.insert(keys.aside.end(), tuned.begin(), tuned.end());
  fs::path out = request.out;
  if (out.empty()) out = folders.size() == 1 ? folders[0] / "plot.svg" : fs::path("plot.svg");
  check_format("--out", out);
  const double width = request.width.empty() ? 0 : parse_width(request.width);
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
  check_by(keys, axes.size(), runs);
  Figure figure = make_figure(std::move(runs), axes, band, keys);
  if (figure.curves.size() > kManyCurves && keys.by.empty() && request.log)
    request.log(LogLine::warning("the figure has " + std::to_string(figure.curves.size()) +
                                 " curves, which are hard to distinguish; name fewer folders, or divide the "
                                 "curves among panels with --by KEY"));
  figure.width = width;
  figure.embeds = request.embeds;
  for (const std::string& label : request.labels) set_label(figure, label);
  mark_diverged(figure);
  return write_figure(figure, out, request.tikz, request.csv);
}

}  // namespace gradwire
