// gw.sweep and gw.plot.
#include "gradwire/sweep.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradwire/plot.h"
#include "python/core/bind.h"
#include "python/core/callbacks.h"
#include "python/core/interrupts.h"
#include "python/core/python_parts.h"

namespace gradwire::python {
namespace {

using TextGrid = std::vector<std::pair<std::string, std::vector<std::string>>>;

std::vector<std::filesystem::path> paths_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// The arguments of gw.sweep() as gradwire/_sweep.py has checked them.
struct SweepArguments {
  py::object oracles, algorithm, compressor, log, on_run;  // or None
  std::optional<Data> data, test;
  py::object x0;  // or None
  std::vector<double> smoothness;
  std::string criterion, budget;
  std::optional<double> target;
  std::vector<std::string> tune;
  std::string out;
  unsigned jobs;
  bool fresh, is_main_thread;
};

py::dict sweep_of(const Experiment& experiment, const TextGrid& texts, const SweepArguments& given) {
  Grid grid;
  for (const auto& [key, values] : texts) {
    std::vector<KeyValue> all(values.begin(), values.end());
    grid.emplace_back(key, std::move(all));
  }
  PythonParts parts(given.oracles, given.algorithm, given.compressor);
  Trouble& trouble = parts.callbacks.trouble;
  SweepOptions options{.data = given.data,
                       .test = given.test,
                       .smoothness = given.smoothness,
                       .criterion = given.criterion,
                       .budget = given.budget,
                       .target = given.target,
                       .tune = given.tune,
                       .out = given.out,
                       .fresh = given.fresh};
  if (!given.x0.is_none()) options.x0 = vector_of<double>(NumPy(), given.x0, kAnyLength, "x0");
  parts.add_to(options);
  options.jobs = parts.need_one_thread() ? 1 : given.jobs;
  options.stop = trouble.stop.get_token();
  if (!given.log.is_none())
    options.log = [&](std::string_view line) { call_python(trouble, [&] { given.log(std::string(line)); }); };
  if (!given.on_run.is_none())
    options.on_run = [&](std::size_t ended, std::size_t runs) {
      call_python(trouble, [&] { given.on_run(ended, runs); });
    };
  std::optional<SweepResult> made;
  {
    Running running;
    trouble.end_with(running.token(), /*is_alone=*/false);
    InterruptsOfSweep interrupts(given.is_main_thread);
    const std::stop_callback at_exit(running.token(), [&] { interrupts.stop(); });
    const std::stop_callback on_interrupt(interrupts.token(), [&] { trouble.stop.request_stop(); });
    const bool is_fp32 = experiment.get("precision") == "fp32";
    made = parts.call(is_fp32,
                      [&](const auto&... oracles) { return sweep(oracles..., experiment, grid, options); });
  }
  trouble.raise_if_any();
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  py::list runs, best;
  for (const SweptRun& run : made->runs)
    runs.append(py::make_tuple(run.folder.string(), py::cast(run.values)));
  for (const BestRuns& each : made->best)
    best.append(
        py::make_tuple(each.algorithm, each.tuned, each.median, each.low, each.high, py::cast(each.runs)));
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
  m.def(
      "sweep",
      [](const Experiment& experiment, const TextGrid& grid, py::object oracles, py::object algorithm,
         py::object compressor, std::optional<Data> data, std::optional<Data> test, py::object x0,
         std::vector<double> smoothness, std::string criterion, std::string budget,
         std::optional<double> target, std::vector<std::string> tune, std::string out, unsigned jobs,
         bool fresh, py::object log, py::object on_run, bool is_main_thread) {
        return sweep_of(experiment, grid,
                        {std::move(oracles), std::move(algorithm), std::move(compressor), std::move(log),
                         std::move(on_run), std::move(data), std::move(test), std::move(x0),
                         std::move(smoothness), std::move(criterion), std::move(budget), target,
                         std::move(tune), std::move(out), jobs, fresh, is_main_thread});
      },
      py::kw_only(), py::arg("experiment"), py::arg("grid"), py::arg("oracles"), py::arg("algorithm"),
      py::arg("compressor"), py::arg("data"), py::arg("test"), py::arg("x0"), py::arg("smoothness"),
      py::arg("criterion"), py::arg("budget"), py::arg("target"), py::arg("tune"), py::arg("out"),
      py::arg("jobs"), py::arg("fresh"), py::arg("log"), py::arg("on_run"), py::arg("is_main_thread"));
  m.def("plot", [](const std::vector<std::string>& folders, const std::string& out, bool embeds,
                   const std::string& x, const std::string& y, const std::vector<std::string>& panels,
                   const std::vector<std::pair<std::string, std::string>>& labels, const std::string& band,
                   const std::string& width, std::optional<double> f_star, const std::string& by, bool all) {
    PlotOptions options{.x = x,
                        .y = y,
                        .panels = panels,
                        .by = by,
                        .band = band,
                        .width = width,
                        .f_star = f_star,
                        .all = all,
                        .embeds = embeds};
    for (const auto& [folder, label] : labels) options.labels.emplace_back(folder, label);
    const py::gil_scoped_release unlocked;
    std::vector<std::string> files;
    for (const auto& file : plot(paths_of(folders), out, options)) files.push_back(file.string());
    return files;
  });
}

}  // namespace gradwire::python
