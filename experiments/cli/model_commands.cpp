#include "experiments/cli/model_commands.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "experiments/cli/run/evaluate.h"
#include "experiments/cli/run/export.h"

namespace gradwire {
namespace {

void add_evaluate(CLI::App& app, ModelArguments& a) {
  CLI::App* evaluate = app.add_subcommand(
      "evaluate", "Compute loss, gradient and accuracy of a model on an experiment's data");
  evaluate
      ->add_option("MODEL", a.model, "A model.bin, a .npy, a .gwn, or a text file with one number per line")
      ->type_name("")
      ->required();
  evaluate->add_option("FILE", a.file, "The experiment, a TOML file")->type_name("")->required();
  evaluate->add_option("--set", a.sets, "Override a key, as for run")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
  evaluate->add_option("--threads", a.threads, "Threads that clients share (default: one per processor)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  evaluate->add_flag("--json", a.json, "Print one JSON object");
  evaluate->footer(R"(Examples:
  gradwire evaluate results/demo-ef21/model.bin experiments/configs/demo_ef21.toml
  gradwire evaluate model.bin FILE.toml --set problem.data=csv:new.csv --json
)");
}

void add_export(CLI::App& app, ModelArguments& a) {
  CLI::App* exported = app.add_subcommand("export", "Write a model as .npy or as raw numbers");
  exported->add_option("MODEL", a.model, "A model.bin, a .npy or a .gwn")->type_name("")->required();
  exported->add_option("OUT", a.out, "A name that ends in .npy (for NumPy) or .raw (raw numbers)")
      ->type_name("")
      ->required();
  exported->footer(
      R"(The numbers keep the precision of the run, fp32 or fp64. A .raw is little-endian. Matrices are in
row-major order. For problem.kind = "mlp" the first layer is weights (in, out), bias; each further
layer is weights (out, in), bias. For all other networks every layer is (out, in). docs/reference/results.md
has the order of all parameters.

Examples:
  gradwire export results/demo-ef21/model.bin model.npy
  gradwire export results/demo-ef21/model.bin model.raw
  gradwire run FILE.toml --set run.x0=file:model.npy      (starts from a model)
)");
}

}  // namespace

void add_model_commands(CLI::App& app, ModelArguments& a) {
  add_evaluate(app, a);
  add_export(app, a);
}

std::optional<int> run_model_command(const CLI::App& app, const ModelArguments& a,
                                     const std::atomic<bool>& stop, const Log& log) {
  if (app.got_subcommand("evaluate")) {
    const RoundRecord record = evaluate_model({a.model, a.file, a.sets, a.threads, log}, stop);
    std::cout << (a.json ? evaluation_json(record) : evaluation_text(record)) << '\n';
    return 0;
  }
  if (app.got_subcommand("export")) {
    std::cout << export_model(a.model, a.out) << '\n';
    return 0;
  }
  return std::nullopt;
}

}  // namespace gradwire
