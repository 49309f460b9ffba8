// The `gradwire` program: its command line, exit codes and signals. Exit codes: 0 success; 2 bad usage,
// configuration or data; 1 any other error.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "config/experiment_file.h"
#include "config/known_keys.h"
#include "config/renamed_keys.h"
#include "experiments/cli/data/data_command.h"
#include "experiments/cli/demo.h"
#include "experiments/cli/experiment_commands.h"
#include "experiments/cli/list.h"
#include "experiments/cli/model_commands.h"
#include "experiments/cli/run/run.h"
#include "experiments/cli/support/program.h"
#include "experiments/cli/sweep/sweep.h"
#include "mpi/launch.h"
#include "mpi/mpi_ranks.h"
#include "plotting/plot.h"
#include "report/build_info.h"
#include "report/command_line.h"
#include "report/logger.h"
#include "report/main_frame.h"
#include "report/results_dir.h"

namespace gradwire {
namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Makes the first Ctrl-C end the run after its round, and the second one end the process. Only for commands
// that check stop_requested.
void handle_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    stop_requested = true;
    end_on_signal(signal);
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // Closing the terminal ends a run like Ctrl-C, unless nohup runs the program.
  struct sigaction of_terminal {};
  if (sigaction(SIGHUP, nullptr, &of_terminal) == 0 && of_terminal.sa_handler != SIG_IGN)
    sigaction(SIGHUP, &action, nullptr);
}

struct Arguments {
  std::string file, topic, transport = "memory";
  std::vector<std::string> sets, folders;
  std::string out, figure;
  unsigned threads = 0;
  std::string resume = "auto";
  bool fresh = false, overwrite = false;
  bool quiet = false, json = false, energy = false;
  double checkpoint_seconds = 30;
  std::string shard = "1/1";
  bool dry_run = false;
  std::vector<std::string> merged;
  PlotRequest plot;
  ModelArguments model;
  ExperimentArguments experiment;
  DataArguments data;
};

Verbosity verbosity(const Arguments& a) {
  return a.json ? Verbosity::kJson : a.quiet ? Verbosity::kQuiet : Verbosity::kNormal;
}

int run(const Arguments& a, const Launch& launch, Logger& logger) {
  RunRequest request;
  request.ranks = join_job(launch);
  const bool talks = request.ranks == nullptr || request.ranks->rank() == 0;
  request.out = a.out;
  request.transport = a.transport == "tcp"       ? TransportKind::kTcp
                      : a.transport == "tls"     ? TransportKind::kTls
                      : a.transport == "encoded" ? TransportKind::kEncoded
                                                 : TransportKind::kMemory;
  request.threads = a.threads;
  request.resume = a.fresh || a.resume == "no" ? Resume::kFresh
                   : a.resume == "auto"        ? Resume::kAuto
                                               : Resume::kYes;
  if (a.overwrite) request.earlier = EarlierResults::kOverwrite;
  request.checkpoint_seconds = a.checkpoint_seconds;
  if (a.energy) request.energy = EnergyFolders{};
  request.verbosity = talks ? verbosity(a) : Verbosity::kQuiet;
  request.log = [&](const LogLine& line) { logger.log(line); };
  RunReport report;
  try {
    LoadedExperiment loaded;
    all_or_none(request.ranks.get(), [&] { loaded = load_experiment(a.file, a.sets); });
    report = run_experiment(loaded, request, stop_requested);
  } catch (const RankFailure& error) {
    // If all ranks meet the same error, the first one reports it and ends the others.
    if (!talks) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    logger.complain(error.what());
    end_job(kFailed);
  } catch (const FailedElsewhere&) {
    return 0;  // the rank that reports the error sets the exit code of the job
  }
  if (!talks) return 0;
  if (!report.last_line.empty()) std::cout << report.last_line << '\n';
  if (report.trouble.empty()) return 0;
  logger.complain(report.trouble);
  return kFailed;
}

// Replaces this process with gradwire-bench, which inherits the terminal, the signals and the exit code.
int bench(const std::vector<std::string>& arguments) {
  const std::string program = installed_program("gradwire-bench", "gradwire bench").string();
  std::vector<const char*> argv = {program.c_str()};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  argv.push_back(nullptr);
  execv(program.c_str(), const_cast<char* const*>(argv.data()));
  throw std::system_error(errno, std::generic_category(), "cannot start " + program);
}

int plot(const Arguments& a, Logger& logger) {
  PlotRequest request = a.plot;
  Value none;
  for (const std::string& warning : use_current_names(request.keys.by, none))
    logger.log(LogLine::warning("--by " + warning));
  request.folders.assign(a.folders.begin(), a.folders.end());
  request.log = [&](const LogLine& line) { logger.log(line); };
  request.out = a.out;
  for (const std::filesystem::path& file : plot_command(request)) std::cout << file.string() << '\n';
  return 0;
}

void list_runs(const SweepPlan& plan) {
  for (const RunOfSweep& run : plan.runs) std::cout << run.id << "  " << label_of(run, plan.varied) << '\n';
  std::cout << plan.runs.size() << " runs\n";
}

int sweep(const Arguments& a, Logger& logger) {
  const SweepPlan plan = read_sweep(a.file, a.sets);
  for (const std::string& warning : plan.warnings) logger.log(LogLine::warning(warning));
  if (a.dry_run) {
    list_runs(plan);
    return 0;
  }
  SweepRequest request;
  request.out = a.out;
  request.jobs = a.threads;
  request.shard = parse_shard(a.shard);
  request.quiet = a.quiet;
  request.fresh = a.fresh;
  request.tikz = a.plot.tikz;
  request.figure = a.figure;
  request.width = a.plot.width;
  request.panels = a.plot.panels;
  request.log = [&](const LogLine& line) { logger.log(line); };
  const bool merges = !a.merged.empty();
  const SweepReport report = merges ? merge_sweep(plan, request, {a.merged.begin(), a.merged.end()})
                                    : run_sweep(plan, request, stop_requested);
  const std::string folder = report.folder.lexically_proximate(std::filesystem::current_path()).string();
  if (!a.quiet) std::cout << report.table << "results: " << folder << '\n';
  const auto of_all = [&](std::size_t runs) {
    return std::to_string(runs) + " of " + std::to_string(plan.runs.size()) + " runs";
  };
  const std::size_t failed = report.failed.size();
  const std::string missing = of_all(report.missing - std::min(failed, report.missing));
  std::string trouble;
  if (report.stopped) {
    trouble = missing + " are left; run the same command again to continue with them";
  } else if (report.missing > failed && merges) {
    trouble =
        missing + " are in none of the folders; run them with gradwire sweep " + a.file + " --out " + folder;
  }
  if (failed > 0)
    trouble = of_all(failed) + " failed (see " + folder + "/runs.csv); the first: " + report.failed.front() +
              (trouble.empty() ? "" : "; " + trouble);
  if (!trouble.empty()) {
    logger.complain(trouble);
    return kFailed;
  }
  if (report.missing > 0 && !a.quiet)
    std::cout << missing << " belong to other shards; join them with gradwire sweep " << a.file
              << " --merge DIR...\n";
  return 0;
}

void add_sweep(CLI::App& app, Arguments& a) {
  CLI::App* sweep = app.add_subcommand("sweep", "Run all combinations in the [sweep] of an experiment file");
  sweep->add_option("FILE", a.file, "The experiment, a TOML file with a [sweep]")->type_name("")->required();
  sweep->add_option("--set", a.sets, "Override a key; replaces the values that [sweep] lists for it")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
  sweep->add_option("--out", a.out, "Folder for the results (default: results/NAME)")->type_name("DIR");
  sweep->add_option("--jobs", a.threads, "Runs at a time (default: one per processor)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  CLI::Option* shard =
      sweep->add_option("--shard", a.shard, "Run only the I-th of N parts of the runs")->type_name("I/N");
  CLI::Option* merge =
      sweep->add_option("--merge", a.merged, "Join the finished runs in these folders, and run nothing")
          ->type_name("DIR");
  merge->excludes(shard);
  sweep->add_flag("--fresh", a.fresh, "Move the sweep in the folder aside, and start again")
      ->excludes(shard)
      ->excludes(merge);
  sweep->add_flag("--dry-run", a.dry_run, "List the runs, but run nothing")->excludes(shard)->excludes(merge);
  sweep->add_flag("--tikz", a.plot.tikz, "Also write plot.tex and plot.dat: the figure for LaTeX (PGFPlots)");
  sweep
      ->add_option("--figure", a.figure, "Also write the figure here, as .svg, .pdf, .png, .tex, .csv or .py")
      ->type_name("FILE");
  sweep->add_option("--width", a.plot.width, "Width of --figure on the page, as in 234pt, 8.5cm or 3.25in")
      ->type_name("LENGTH");
  sweep->add_option("--panel", a.plot.panels, "A panel of the figure, as for plot; may be repeated")
      ->type_name("Y:X")
      ->expected(1)
      ->take_all();
  sweep->add_flag("--quiet", a.quiet, "Print only errors and warnings");
  sweep->footer(R"(Examples:
  gradwire sweep experiments/sweeps/step_sizes.toml
  gradwire sweep experiments/sweeps/step_sizes.toml --set run.rounds=100 --out results/quick
  gradwire sweep FILE.toml --shard 2/4 --out part2      (on the second of four machines)
  gradwire sweep FILE.toml --merge part1 part2 part3 part4

Results: runs/ID for each run, runs.csv, best.csv, plot.svg, plot.py, plot.csv. Runs with results are not repeated.
)");
}

void add_run(CLI::App& app, Arguments& a) {
  CLI::App* run = app.add_subcommand("run", "Run one experiment");
  run->add_option("FILE", a.file,
                  "The experiment: a TOML file (gradwire list keys), or the name of a shipped one (gradwire "
                  "list experiments)")
      ->type_name("")
      ->required();
  run->add_option("--set", a.sets,
                  "Override a key: a.b=v, or b=v if only one key ends so; v is a TOML value, else a string")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
  run->add_option_function<std::string>(
         "--seeds",
         [](const std::string&) {
           throw CLI::ValidationError(
               "--seeds",
               "a run has one seed, as in --seed 3; several: gradwire compare FILE --algorithms "
               "NAME --seeds N, or seed = [1, 2, 3] in [sweep], and gradwire sweep");
         })
      ->group("");  // for the answer alone; --help omits it
  run->add_option("--out", a.out, "Folder for the results (default: results/NAME, and what --set changes)")
      ->type_name("DIR");
  run->add_option("--threads", a.threads, "Threads that clients share (default: one per processor)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  run->add_option(
         "--transport", a.transport,
         "memory; encoded (through the codec); tcp (separate processes); tls (separate processes over TLS, "
         "each with an identity). All give the same bits")
      ->type_name("KIND")
      ->check(CLI::IsMember({"memory", "encoded", "tcp", "tls"}, CLI::ignore_case));
  CLI::Option* resume =
      run->add_flag(
             "--resume{yes}", a.resume,
             "Fail if there is no checkpoint to resume from; by default the run then starts from round 0")
          ->check(CLI::IsMember({"no", "yes", "auto"}));
  run->add_flag("--fresh", a.fresh, "Start from round 0, and move the checkpoint of an earlier run aside")
      ->excludes(resume);
  run->add_flag("--overwrite", a.overwrite, "Replace finished results, also those of other settings");
  run->add_option("--checkpoint-every", a.checkpoint_seconds,
                  "Seconds from one checkpoint to the next; 0 turns checkpoints off")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  run->add_flag("--energy", a.energy,
                "Measure the energy of the machine, if it has counters (RAPL) or sensors (hwmon)");
  CLI::Option* quiet = run->add_flag("--quiet", a.quiet, "Print only errors");
  run->add_flag("--json", a.json, "Print one JSON object per evaluated round, and log lines as JSON")
      ->excludes(quiet);
  run->footer(R"(Examples:
  gradwire run experiments/configs/ef21_a9a.toml
  gradwire run experiments/configs/ef21_a9a.toml --set algorithm.compressor=topk:k=5 --set 'name="ef21-top5"'
  gradwire run experiments/configs/fedavg_digits.toml --transport tcp --out results/over-tcp
  gradwire run quadratics --rounds 100 --seed 3 --method ef21 --compressor topk:k=5

Every key of an experiment is an option: --rounds 100 is --set run.rounds=100. Words that people use in place of keys
work also: --method, --step, --lr, --n.
Results: config.toml, metrics.csv, model.bin, summary.json, plot.svg, plot.py.
A folder is not replaced by results of other settings. With --set, its name has what was changed, as in
results/quadratics-compressor=sign.
Ctrl-C ends the run after its round and writes its results so far. The same command continues a stopped run, or a
killed run from its last checkpoint, and gives the same bits. If gradwire was built with MPI, `mpirun -n 8 gradwire run
FILE` divides the clients among 8 processes, and gives the same bits (docs/how-to/run_on_a_cluster.md).
)");
}

void add_plot(CLI::App& app, Arguments& a) {
  CLI::App* plot = app.add_subcommand("plot", "Draw the curves of one or several runs");
  plot->add_option("DIR", a.folders, "Folders of results, or folders that contain such folders")->required();
  plot->add_option("--out", a.out,
                   "The figure, by its ending: .svg, .pdf, .png, .tex (PGFPlots), .csv (numbers) or .py (a "
                   "script) (default: "
                   "DIR/plot.svg; for several DIR plot.svg here)")
      ->type_name("FILE");
  plot->add_option("--width", a.plot.width, "Width on the page, as in 234pt, 8.5cm or 3.25in")
      ->type_name("LENGTH");
  plot->add_option("--label", a.plot.labels, "Label of the curve with the runs in DIR; may be repeated")
      ->type_name("DIR=TEXT")
      ->expected(1)
      ->take_all();
  plot->add_option(
          "--x", a.plot.x,
          "bits, total_bits, paper_bits, bytes, total_bytes, rounds, grad_calls, seconds, sim_seconds, or "
          "another column of metrics.csv")
      ->type_name("COLUMN");
  plot->add_option("--y", a.plot.y, "grad_norm_sq, loss, gap (f - f*), accuracy, or another column")
      ->type_name("COLUMN");
  plot->add_option("--panel", a.plot.panels, "A panel of the figure; may be repeated")
      ->type_name("Y:X")
      ->expected(1)
      ->take_all();
  plot->add_option("--band", a.plot.band,
                   "Band around the median of runs that differ only in the seed: quartiles, range or none; "
                   "auto: quartiles, or the range for three seeds or fewer")
      ->type_name("KIND")
      ->check(CLI::IsMember({"auto", "quartiles", "range", "none"}, CLI::ignore_case));
  plot->add_option("--f-star", a.plot.f_star, "f* of gap (default: computed once for each problem)")
      ->type_name("VALUE");
  plot->add_option("--by", a.plot.keys.by,
                   "Separate panels for each value of a key, such as problem.data; labels omit keys that "
                   "differ with it")
      ->type_name("KEY");
  plot->add_flag("--all", a.plot.all, "Also draw the runs of a sweep that are not among its best (best.csv)");
  plot->add_flag("--csv", a.plot.csv, "Also write FILE.csv: the numbers of the curves, thinned");
  plot->add_flag("--tikz", a.plot.tikz, "Also write FILE.tex and FILE.dat: the figure for LaTeX (PGFPlots)");
  plot->footer(
      R"(Writes an SVG, and next to it a Python script that draws the same with Matplotlib. PDF and PNG need rsvg-convert
(Debian, Ubuntu: librsvg2-bin) or inkscape.
Runs that differ only in the seed are one curve. A folder of a sweep has a curve for each line of its best.csv. Without --y and --panel the figure shows accuracy and loss if all runs
measured accuracy, else ||grad f(x)||^2.

Examples:
  gradwire plot results/ef21_a9a
  gradwire plot results/ef21_a9a results/marina_a9a --out compare.svg
  gradwire plot results --panel gap:bits --panel grad_norm_sq:seconds --out compare.svg
  gradwire plot results/gd results/ef21 --width 234pt --label 'results/gd=no compression' --out fig.pdf
  gradwire plot results/sweep --by problem.data --csv
)");
}

void add_list(CLI::App& app, Arguments& a) {
  CLI::App* list = app.add_subcommand("list", "Show the names and keys that an experiment file can use");
  list->add_option(
      "TOPIC", a.topic,
      "algorithms, compressors, optimizers, problems, keys; metrics (columns of metrics.csv), data (public "
      "data sets), experiments (shipped ones) or runs (those in results/ that ended without results); or a "
      "name of one of them, such as ef21; default: the first five");
  list->footer("Examples:\n  gradwire list\n  gradwire list algorithms\n  gradwire list ef21\n");
}

// Adds `bench`. All arguments after it go to gradwire-bench, including --help.
void add_bench(CLI::App& app) {
  app.add_subcommand("bench", "Measure the speed of the parts of gradwire")
      ->prefix_command()
      ->set_help_flag();
}

int dispatch(const CLI::App& app, const Arguments& a, Logger& logger) {
  if (app.got_subcommand("bench")) return bench(app.get_subcommand("bench")->remaining());
  if (app.got_subcommand("list")) {
    std::cout << list_text(a.topic, "results");
    return 0;
  }
  if (app.got_subcommand("plot")) return plot(a, logger);
  if (const auto code =
          run_model_command(app, a.model, stop_requested, [&](const LogLine& line) { logger.log(line); }))
    return *code;
  if (app.got_subcommand("compare")) handle_signals();
  if (const auto code = run_experiment_command(app, a.experiment, stop_requested, logger)) return *code;
  handle_signals();
  const Launch launch = launch_of(std::getenv);
  if (app.got_subcommand("run")) return run(a, launch, logger);
  if (app.get_subcommands().empty() && launch.processes > 1)
    throw UsageError("the demo runs in one process, but " + launch.variable + " says that this is one of " +
                     std::to_string(launch.processes) + "; start it without mpirun or srun");
  if (app.got_subcommand("sweep")) return sweep(a, logger);
  if (app.got_subcommand("data")) return run_data_command(app, a.data, stop_requested);
  return run_demo("results", Verbosity::kNormal, logger, stop_requested);
}

int main_of(int argc, char** argv) {
  Logger logger("gradwire", log_format(argc, argv));
  Arguments a;
  CLI::App app("gradwire: federated learning, simulated or over a network, with the same bits", "gradwire");
  app.set_version_flag("--version", "gradwire " + build_info());
  app.footer(R"(Without a command, gradwire runs the demo: it takes a few seconds and writes results/demo.svg.

Examples:
  gradwire
  gradwire run experiments/configs/ef21_a9a.toml
  gradwire run quadratics --rounds 100 --method diana --compressor randk:k=10
  gradwire list algorithms
  gradwire help run
)");
  app.require_subcommand(0, 1);
  add_run(app, a);
  add_sweep(app, a);
  add_experiment_commands(app, a.experiment);
  add_model_commands(app, a.model);
  add_plot(app, a);
  add_list(app, a);
  add_bench(app);
  add_data_command(app, a.data);
  if (const auto code = parse_command_line(app, argc, argv, logger, key_of_word)) return *code;
  return exit_code_of([&] { return dispatch(app, a, logger); },
                      [&](const std::string& what, int) { logger.complain(what); });
}

}  // namespace
}  // namespace gradwire

int main(int argc, char** argv) { return gradwire::run_main("gradwire", argc, argv, gradwire::main_of); }
