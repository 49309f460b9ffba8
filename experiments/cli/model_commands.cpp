#include "experiments/cli/model_commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "experiments/cli/run/evaluate.h"
#include "experiments/cli/run/export.h"
#include "experiments/cli/run/finished_run.h"
#include "experiments/cli/run/predict.h"

namespace gradwire {
namespace {

void add_model_data(CLI::App* command, ModelArguments& a) {
  command
      ->add_option(
          "MODEL", a.model,
          "A folder of results, or a model.bin, a .npy, a .gwn, or a text file with one number per line")
      ->type_name("")
      ->required();
  command->add_option("FILE", a.file, "The experiment, a TOML file (default: config.toml next to the model)")
      ->type_name("");
  command->add_option("--set", a.sets, "Override a key, as for run")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
}

void add_evaluate(CLI::App& app, ModelArguments& a) {
  CLI::App* evaluate = app.add_subcommand(
      "evaluate", "Compute loss, gradient and accuracy of a model on an experiment's data, or on other data");
  add_model_data(evaluate, a);
  evaluate->add_option("--data", a.data, "Measure on all samples of this file, written like problem.data")
      ->type_name("SOURCE");
  evaluate->add_option("--threads", a.threads, "Threads that clients share (default: one per processor)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  evaluate->add_flag("--json", a.json, "Print one JSON object");
  evaluate->footer(R"(Examples:
  gradwire evaluate results/demo-ef21 --data new.csv
  gradwire evaluate results/demo-ef21/model.bin experiments/configs/demo_ef21.toml --json
)");
}

void add_predict(CLI::App& app, ModelArguments& a) {
  CLI::App* predict = app.add_subcommand("predict", "Predict the class or the value of each row of a file");
  add_model_data(predict, a);
  predict
      ->add_option("--data", a.data,
                   "The rows, written like problem.data; the label may be absent in a table")
      ->type_name("SOURCE")
      ->required();
  predict->add_option("--out", a.out, "The file to write (default: print the lines)")->type_name("FILE.csv");
  predict->footer(
      R"(For problem.kind = "logistic", "mlp" and "cnn" a line has the class of a row and its probability, for
"least_squares" the value.

Examples:
  gradwire predict results/pets --data new.csv --out predictions.csv
  gradwire predict run/model.bin FILE.toml --data new.csv
)");
}

void add_export(CLI::App& app, ModelArguments& a) {
  CLI::App* exported = app.add_subcommand("export", "Write a model as .npy, as text or as raw numbers");
  exported->add_option("MODEL", a.model, "A folder of results, a model.bin, a .npy or a .gwn")
      ->type_name("")
      ->required();
  exported
      ->add_option(
          "OUT", a.out,
          "A name that ends in .npy (for NumPy), .csv (names and numbers), .txt (a number in each line) "
          "or .raw (raw numbers)")
      ->type_name("")
      ->required();
  exported->footer(
      R"(The numbers keep the precision of the run, fp32 or fp64. A .raw is little-endian. Matrices are in
row-major order. For problem.kind = "mlp" the first layer is weights (in, out), bias; each further
layer is weights (out, in), bias. For all other networks every layer is (out, in). docs/reference/results.md
has the order of all parameters.

Examples:
  gradwire export results/demo-ef21/model.bin model.npy
  gradwire export results/pets weights.csv
  gradwire run FILE.toml --set run.x0=file:model.npy      (starts from a model)
)");
}

}  // namespace

void add_model_commands(CLI::App& app, ModelArguments& a) {
  add_evaluate(app, a);
  add_predict(app, a);
  add_export(app, a);
}

std::optional<int> run_model_command(const CLI::App& app, const ModelArguments& a,
                                     const std::atomic<bool>& stop, const Log& log) {
  if (app.got_subcommand("evaluate")) {
    const ModelEvaluation found = evaluate_model({a.model, a.file, a.data, a.sets, a.threads, log}, stop);
    std::cout << (a.json ? evaluation_json(found) : evaluation_text(found)) << '\n';
    return 0;
  }
  if (app.got_subcommand("predict")) {
    const std::string text = predictions_csv({a.model, a.file, a.data, a.sets, 0, log});
    if (a.out.empty()) {
      std::cout << text;
      return 0;
    }
    write_text(a.out, text);
    std::cout << a.out << ": " << std::ranges::count(text, '\n') - 1 << " predictions\n";
    return 0;
  }
  if (app.got_subcommand("export")) {
    std::cout << export_model(a.model, a.out) << '\n';
    return 0;
  }
  return std::nullopt;
}

}  // namespace gradwire
