#include "experiments/cli/experiment_commands.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "experiments/cli/run/new_experiment.h"
#include "experiments/cli/run/optimum.h"

namespace gradwire {
namespace {

void add_file(CLI::App& command, ExperimentArguments& a) {
  command.add_option("FILE", a.file, "The experiment, a TOML file")->type_name("")->required();
  command.add_option("--set", a.sets, "Override a key, as for run")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
}

void add_optimum(CLI::App& app, ExperimentArguments& a) {
  CLI::App* optimum = app.add_subcommand(
      "optimum", "Compute f*, the constants of a problem, and theory's step size of every algorithm");
  add_file(*optimum, a);
  optimum->add_flag("--json", a.json, "Print one JSON object");
  optimum->footer(
      R"(Each algorithm has the compressor of the experiment if it takes that, else randk or topk with as many numbers.
An experiment without compressor gets 1 % of the numbers. f* is kept for plots and for the last line of runs.

Examples:
  gradwire optimum experiments/configs/quadratics.toml
  gradwire optimum FILE.toml --set algorithm.compressor=randk:k=5 --json
)");
}

void add_compare(CLI::App& app, ExperimentArguments& a) {
  CLI::App* compare = app.add_subcommand("compare", "Run several algorithms on the problem of an experiment");
  add_file(*compare, a);
  compare
      ->add_option("--algorithms", a.compare.algorithms,
                   "Their names, with commas between them (gradwire list algorithms); NAME:COMPRESSOR also "
                   "names the compressor")
      ->type_name("NAME,...")
      ->required();
  compare->add_option("--seeds", a.compare.seeds, "Runs of each algorithm, with consecutive seeds")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  compare->add_flag("--tune", a.compare.tune,
                    "Search the best step size of each algorithm among powers of two of theory's");
  compare
      ->add_option("--budget", a.compare.budget,
                   "Judge runs by the last row within a budget, as in 'bits_up = 1e7'")
      ->type_name("COLUMN=NUMBER");
  compare->add_option("--out", a.out, "Folder for the results (default: results/NAME-compare)")
      ->type_name("DIR");
  compare->add_flag("--fresh", a.compare.sweep.fresh,
                    "Move the comparison in the folder aside, and start again");
  compare->add_flag("--overwrite", a.compare.overwrite, "Replace a comparison of other settings");
  compare->add_option("--jobs", a.compare.sweep.jobs, "Runs at a time (default: one per processor)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  compare->add_flag("--tikz", a.compare.sweep.tikz, "Also write plot.tex and plot.dat, for LaTeX (PGFPlots)");
  compare
      ->add_option("--figure", a.figure, "Also write the figure here, as .svg, .pdf, .png, .tex, .csv or .py")
      ->type_name("FILE");
  compare
      ->add_option("--width", a.compare.sweep.width,
                   "Width of --figure on the page, as in 234pt, 8.5cm or 3.25in")
      ->type_name("LENGTH");
  compare
      ->add_option("--panel", a.compare.sweep.panels, "A panel of the figure, as for plot; may be repeated")
      ->type_name("Y:X")
      ->expected(1)
      ->take_all();
  compare->add_flag("--quiet", a.compare.sweep.quiet, "Print only errors and warnings");
  compare->footer(
      R"(Each algorithm has the compressor of the experiment if it takes that, else randk or topk with as many numbers;
log lines say which. The folder of the results is that of a sweep: sweep.toml is the sweep that was run, and
gradwire sweep repeats or extends it. Runs with results are not repeated. A folder is not replaced by a comparison of
other settings. The algorithm of the experiment need not be compared.
Every key of an experiment is an option: --rounds 100 is --set run.rounds=100. A parameter such as --local-steps 5 is for
all compared algorithms that have it.

Examples:
  gradwire compare experiments/configs/quadratics.toml --algorithms gd,diana,marina,ef21 --seeds 5
  gradwire compare quadratics --algorithms gd,ef21:topk:k=3,marina:randk:k=2 --rounds 500 --panel loss:bits
  gradwire compare FILE.toml --algorithms gd,ef21 --tune --budget 'bits_up = 1e6'
  gradwire compare FILE.toml --algorithms gd,ef21 --tune --figure fig.pdf --width 234pt
)");
}

void add_new(CLI::App& app, ExperimentArguments& a) {
  CLI::App* made = app.add_subcommand("new", "Write an experiment file for your data");
  made->add_option("NAME", a.name, "The experiment; the file is NAME.toml")->type_name("")->required();
  made->add_option("--data", a.data, "The data: a file, or a source as in problem.data")
      ->type_name("DATA")
      ->required();
  made->add_option("--label", a.label, "The label: a column of a table, by its name or its number from 1")
      ->type_name("COLUMN");
  made->add_option("--set", a.sets, "Write a key into the file, as for run")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
  made->footer(
      R"(Looks at the data, and chooses the problem type, the number of clients and the algorithm. The file has comments and
runs as it is. The command replaces no file. Log lines say which column of a table is the label, and what is left out:
columns that number the lines, and lines that lack a value. Every key of an experiment is an option, as for run.

Examples:
  gradwire new pets --data pets.csv
  gradwire new pets --data pets.csv --label animal --missing mean
  gradwire new a9a --data libsvm:a9a
)");
}

int run_compare(const ExperimentArguments& a, const std::atomic<bool>& stop, Logger& logger) {
  CompareRequest request = a.compare;
  request.file = a.file;
  request.sets = a.sets;
  request.sweep.out = a.out;
  request.sweep.figure = a.figure;
  request.sweep.log = [&](const LogLine& line) {
    if (!request.sweep.quiet || line.level != LogLevel::kInfo) logger.log(line);
  };
  const SweepReport report = compare(request, stop);
  const std::filesystem::path folder = report.folder.lexically_proximate(std::filesystem::current_path());
  if (!request.sweep.quiet && !report.table.empty())
    std::cout << report.table << "results: " << folder.string()
              << ", figure: " << (a.figure.empty() ? (folder / "plot.svg").string() : a.figure)
              << ", table: " << (folder / "best.csv").string() << '\n';
  std::string trouble;
  if (report.stopped) trouble = "stopped; run the same command again to continue";
  if (!report.failed.empty())
    trouble = std::to_string(report.failed.size()) + " runs failed (see " + (folder / "runs.csv").string() +
              "); the first: " + report.failed.front();
  if (trouble.empty()) return 0;
  logger.complain(trouble);
  return kFailed;
}

}  // namespace

void add_experiment_commands(CLI::App& app, ExperimentArguments& a) {
  add_optimum(app, a);
  add_compare(app, a);
  add_new(app, a);
}

std::optional<int> run_experiment_command(const CLI::App& app, const ExperimentArguments& a,
                                          const std::atomic<bool>& stop, Logger& logger) {
  if (app.got_subcommand("optimum")) {
    const OptimumReport report =
        report_optimum(a.file, a.sets, [&](const LogLine& line) { logger.log(line); });
    std::cout << (a.json ? optimum_json(report) : optimum_text(report));
    return 0;
  }
  if (app.got_subcommand("compare")) return run_compare(a, stop, logger);
  if (app.got_subcommand("new")) {
    std::vector<std::string> sets = a.sets;
    if (!a.label.empty()) sets.push_back("problem.label=" + a.label);
    const NewExperiment made = write_new_experiment(a.name, a.data, sets);
    for (const LogLine& line : made.notes) logger.log(line);
    std::cout << made.file.string() << '\n';
    return 0;
  }
  return std::nullopt;
}

}  // namespace gradwire
