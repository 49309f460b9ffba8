// gw.sweep and gw.plot.
#include "gradwire/plot.h"
#include "gradwire/sweep.h"

#include <string>
#include <utility>
#include <vector>

#include "python/core/bind.h"
#include "python/core/callbacks.h"
#include "python/core/interrupts.h"

namespace gradwire::python {
namespace {

using TextGrid = std::vector<std::pair<std::string, std::vector<std::string>>>;

std::vector<std::filesystem::path> paths_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

py::dict sweep_of(const Experiment& experiment, const TextGrid& texts, const std::string& out, unsigned jobs,
                  bool fresh, const py::object& log, bool is_main_thread) {
  Grid grid;
  for (const auto& [key, values] : texts) {
    std::vector<KeyValue> all(values.begin(), values.end());
    grid.emplace_back(key, std::move(all));
  }
  Trouble trouble;
  SweepOptions options{.out = out, .jobs = jobs, .fresh = fresh};
  if (!log.is_none())
    options.log = [&](std::string_view line) { call_python(trouble, [&] { log(std::string(line)); }); };
  std::optional<SweepResult> made;
  {
    Running running;
    InterruptsOfSweep interrupts(is_main_thread);
    const std::stop_callback at_exit(running.token(), [&] { interrupts.stop(); });
    options.stop = interrupts.token();
    made = call_unlocked(trouble, [&] { return sweep(experiment, grid, options); });
  }
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  py::list runs, best;
  for (const SweptRun& run : made->runs) runs.append(py::make_tuple(run.folder.string(), py::cast(run.values)));
  for (const BestRuns& each : made->best)
    best.append(py::make_tuple(each.algorithm, each.tuned, each.median, each.low, each.high, py::cast(each.runs)));
  py::dict result;
  result["folder"] = made->folder.string();
  result["runs"] = runs;
  result["best"] = best;
  result["table"] = made->table;
  result["failed"] = py::cast(made->failed);
  return result;
}

}  // namespace

void bind_sweep(py::module_& m) {
  m.def("sweep", &sweep_of);
  m.def("plot", [](const std::vector<std::string>& folders, const std::string& out, bool embeds,
                   const std::string& x, const std::string& y, const std::vector<std::string>& panels,
                   const std::vector<std::pair<std::string, std::string>>& labels, const std::string& band,
                   const std::string& width, std::optional<double> f_star, const std::string& by) {
    PlotOptions options{.x = x, .y = y, .panels = panels, .by = by, .band = band, .width = width,
                        .f_star = f_star, .embeds = embeds};
    for (const auto& [folder, label] : labels) options.labels.emplace_back(folder, label);
    const py::gil_scoped_release unlocked;
    std::vector<std::string> files;
    for (const auto& file : plot(paths_of(folders), out, options)) files.push_back(file.string());
    return files;
  });
}

}  // namespace gradwire::python
