#include "experiments/plot/plot.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include "base/nearest.h"
#include "compressors/compressor.h"
#include "experiments/plot/plot_script.h"
#include "experiments/plot/plot_svg.h"
#include "experiments/support/metrics_reader.h"
#include "experiments/support/results_dir.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

// "randk:k=10,scaled=true" becomes "randk:k=10": leaves out parameters that have their default, but not the
// first, the count.
std::string short_compressor(std::string spec) {
  for (const CompressorHelp& help : compressor_help()) {
    if (!spec.starts_with(help.name + ":")) continue;
    for (std::size_t at = help.parameters.find(','); at != std::string::npos;) {
      const std::size_t next = help.parameters.find(',', at + 1);
      const std::string parameter = help.parameters.substr(at, next - at);  // with its comma
      if (const std::size_t found = spec.find(parameter); found != std::string::npos)
        spec.erase(found, parameter.size());
      at = next;
    }
  }
  return spec;
}

// The first way of naming that tells all runs apart.
void set_labels(std::vector<PlotCurve>& curves, std::span<const RunIdentity> runs,
                std::span<const fs::path> folders) {
  const auto method = [](const RunIdentity& r) {
    return r.compressor.empty() || r.compressor == "identity"
               ? r.algorithm
               : r.algorithm + ", " + short_compressor(r.compressor);
  };
  for (int way = 0; way < 3; ++way) {
    std::set<std::string> distinct;
    for (std::size_t k = 0; k < curves.size(); ++k) {
      curves[k].label = way == 0 ? method(runs[k]) : way == 1 ? runs[k].name : folders[k].string();
      distinct.insert(curves[k].label);
    }
    if (distinct.size() == curves.size()) return;
  }
}

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

const PlotColumn* column(std::span<const PlotColumn> columns, const std::string& name,
                         const std::string& option) {
  if (name.empty()) return nullptr;
  if (const PlotColumn* found = find_column(columns, name); found != nullptr) return found;
  std::vector<std::string> known;
  for (const PlotColumn& c : columns) known.emplace_back(c.name);
  throw UsageError(option + ": unknown column '" + name + "'" + suggest(name, known));
}

}  // namespace

std::vector<PlotCurve> load_curves(std::span<const fs::path> folders) {
  std::vector<PlotCurve> curves;
  std::vector<RunIdentity> runs;
  for (const fs::path& folder : folders) {
    const auto identity = identify_run(folder);
    if (!identity)
      throw UsageError(
          folder.string() +
          ": no results of a run there (config.toml and metrics.csv); give a folder that gradwire run wrote");
    runs.push_back(*identity);
    curves.push_back({"", folder / "metrics.csv", read_metrics(folder / "metrics.csv")});
    if (curves.back().records.empty())
      throw UsageError(curves.back().metrics.string() +
                       ": has no rows to plot; run with run.evaluate_every above 0");
  }
  set_labels(curves, runs, folders);
  return curves;
}

void write_figure(const Figure& figure, const fs::path& svg) {
  fs::path script = svg;
  script.replace_extension(".py");
  check_overwrite(svg);
  check_overwrite(script);
  const fs::path folder = fs::absolute(svg).parent_path();
  write_drawing(svg, draw_svg(figure));
  write_drawing(script, draw_script(figure, folder));
}

fs::path plot_command(const PlotRequest& request) {
  fs::path out = request.out;
  if (out.empty()) out = request.folders.size() == 1 ? request.folders[0] / "plot.svg" : fs::path("plot.svg");
  if (out.extension() != ".svg")
    throw UsageError("--out " + out.string() +
                     ": the figure is an SVG: end the name in .svg; for PNG or PDF run the script beside it");
  const PlotColumn* x = column(x_columns(), request.x, "--x");
  const PlotColumn* y = column(y_columns(), request.y, "--y");
  std::vector<PlotCurve> curves = load_curves(request.folders);
  if (y != nullptr && y->name == "accuracy") {
    const auto measured = [](const PlotCurve& c) {
      return std::any_of(c.records.begin(), c.records.end(),
                         [](const RoundRecord& r) { return r.accuracy.has_value(); });
    };
    for (const PlotCurve& c : curves)
      if (!measured(c))
        throw UsageError("--y accuracy: " + c.metrics.string() +
                         " has no accuracy; choose loss or grad_norm_sq");
  }
  if (x != nullptr && x->name == "sim_seconds") {
    for (const PlotCurve& c : curves)
      if (!c.records.back().sim_seconds)
        throw UsageError("--x sim_seconds: " + c.metrics.string() +
                         " has none: the run was on no virtual clock (clients.seconds); choose seconds");
  }
  write_figure(make_figure(std::move(curves), x, y), out);
  return out;
}

}  // namespace gradwire
