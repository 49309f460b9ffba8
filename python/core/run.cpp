// gw.run on train().
#include <memory>
#include <optional>
#include <string>

#include "gradwire/train.h"
#include "python/core/bind.h"
#include "python/core/callbacks.h"
#include "python/core/interrupts.h"
#include "python/core/progress.h"
#include "python/core/python_parts.h"
#include "python/core/rows.h"

namespace gradwire::python {
namespace {

// The arguments of gw.run() as gradwire/_run.py has checked them.
struct RunArguments {
  // Each may be None.
  py::object oracles;                   // a sequence of gw.Oracle
  py::object algorithm, compressor;     // an Algorithm; a UserCompressor
  py::object on_record, progress, log;  // functions of a row (a tuple); of rounds and a row; of a line
  py::object on_failure;                // a function of a TrainResult
  std::optional<Data> data, test;
  std::vector<double> x0, smoothness;
  std::string out, transport;
  unsigned threads;
  double checkpoint_seconds;
  bool fresh, overwrite, is_main_thread;
};

// `progress` may be null.
std::function<bool(const MetricsRow&)> on_row_of(const RunArguments& given, Callbacks& callbacks,
                                                 ProgressCalls* progress) {
  if (given.on_record.is_none() && progress == nullptr) return {};
  return [&given, &callbacks, progress](const MetricsRow& row) {
    if (progress != nullptr) progress->row(row);
    if (given.on_record.ptr() == Py_None) return true;
    return call_python(callbacks.trouble, [&] {
      const py::object made = given.on_record(row_for_python(row));
      const int ends = PyObject_IsTrue(made.ptr());
      if (ends < 0) throw py::error_already_set();
      return ends == 0;
    });
  };
}

TrainResult run(const Experiment& experiment, const RunArguments& given) {
  PythonParts parts(given.oracles, given.algorithm, given.compressor);
  Callbacks& callbacks = parts.callbacks;
  InterruptsOfRun interrupts(given.is_main_thread, callbacks.trouble);
  TrainOptions options;
  parts.add_to(options);
  options.data = given.data;
  options.test = given.test;
  options.x0 = given.x0;
  options.smoothness = given.smoothness;
  options.out = given.out;
  options.transport = given.transport;
  options.threads = parts.need_one_thread() ? 1 : given.threads;
  options.fresh = given.fresh;
  options.overwrite = given.overwrite;
  options.checkpoint_seconds = given.checkpoint_seconds;
  std::optional<ProgressCalls> progress;
  if (!given.progress.is_none()) {
    progress.emplace(given.progress, callbacks.trouble);
    options.on_round = [&](std::uint32_t rounds) { progress->round(rounds); };
  }
  options.on_row = on_row_of(given, callbacks, progress ? &*progress : nullptr);
  if (!given.log.is_none())
    options.log = [&](std::string_view line) {
      call_python(callbacks.trouble, [&] { given.log(std::string(line)); });
    };
  const bool is_fp32 = experiment.get("precision") == "fp32";
  Running running;
  callbacks.trouble.end_with(running.token(), options.threads == 1);
  const std::stop_callback at_exit(running.token(), [&] { interrupts.stop(); });
  options.stop = interrupts.token();
  if (interrupts.are_noted()) options.before_gradient = [&] { interrupts.look(); };
  std::optional<TrainResult> measured;
  options.on_failure = [&](const TrainResult& failed) { measured = failed; };
  try {
    measured =
        parts.call(is_fp32, [&](const auto&... oracles) { return train(oracles..., experiment, options); });
    callbacks.trouble.raise_if_any();
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  } catch (...) {
    if (measured) given.on_failure(*measured);
    throw;
  }
  return *std::move(measured);
}

}  // namespace

void bind_run(py::module_& m) {
  m.def(
      "run",
      [](const Experiment& experiment, py::object oracles, py::object algorithm, py::object compressor,
         std::optional<Data> data, std::optional<Data> test, py::object x0, std::vector<double> smoothness,
         std::string out, std::string transport, unsigned threads, double checkpoint_seconds, bool fresh,
         bool overwrite, py::object on_record, py::object progress, py::object log, py::object on_failure,
         bool is_main_thread) {
        std::vector<double> start;
        if (!x0.is_none()) start = vector_of<double>(NumPy(), x0, kAnyLength, "x0");
        return run(experiment,
                   {std::move(oracles), std::move(algorithm), std::move(compressor), std::move(on_record),
                    std::move(progress), std::move(log), std::move(on_failure), std::move(data),
                    std::move(test), std::move(start), std::move(smoothness), std::move(out),
                    std::move(transport), threads, checkpoint_seconds, fresh, overwrite, is_main_thread});
      },
      py::kw_only(), py::arg("experiment"), py::arg("oracles"), py::arg("algorithm"), py::arg("compressor"),
      py::arg("data"), py::arg("test"), py::arg("x0"), py::arg("smoothness"), py::arg("out"),
      py::arg("transport"), py::arg("threads"), py::arg("checkpoint_seconds"), py::arg("fresh"),
      py::arg("overwrite"), py::arg("on_record"), py::arg("progress"), py::arg("log"), py::arg("on_failure"),
      py::arg("is_main_thread"));

  // For gw.check() and for oracles that Python code calls: computes in C++ what the run would.
  m.def("call_oracle",
        [](const py::object& oracle, const py::object& x, const py::object& batch, bool is_fp32) {
          Callbacks callbacks;
          const OracleParts parts(oracle);
          const auto compute = [&](auto real) -> py::object {
            using Real = decltype(real);
            const auto made = python_oracle<Real>(parts, callbacks.arrays, callbacks);
            const std::vector<Real> point = vector_of<Real>(callbacks.numpy, x, parts.dim, "x");
            const std::vector<std::uint32_t> samples =
                vector_of<std::uint32_t>(callbacks.numpy, batch, kAnyLength, "batch");
            std::vector<Real> gradient(parts.dim);
            const Real loss = call_unlocked(
                callbacks.trouble, [&] { return made->loss_and_gradient(point, samples, gradient); });
            return py::make_tuple(static_cast<double>(loss),
                                  callbacks.numpy.array_of(std::span(std::as_const(gradient))));
          };
          return is_fp32 ? compute(float()) : compute(double());
        });
}

}  // namespace gradwire::python
