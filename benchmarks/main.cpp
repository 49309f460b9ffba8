// The program `gradwire-bench`, which `gradwire bench` starts. It is separate, so that users who only run
// experiments need not build the server, the client and the reference code. Exit codes are those of gradwire.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "experiments/cli/support/program.h"
#include "report/build_info.h"
#include "report/command_line.h"
#include "report/logger.h"
#include "report/main_frame.h"
#include "report/results_dir.h"

namespace gradwire {
namespace {

struct BenchArguments {
  std::vector<std::string> names;
  BenchOptions options;
};

int bench(const BenchArguments& a, const Launch& launch) {
  BenchOptions options = a.options;
  std::ostringstream discarded;
  if (launch.processes > 1) {
    for (const std::string& name : a.names)
      if (name.rfind("cluster", 0) != 0)
        throw UsageError("bench " + name + " measures a single process; start it without mpirun");
    if (a.names.empty()) throw UsageError("ranks measure only cluster; start gradwire bench cluster");
    options.ranks = join_job(launch);
    if (options.ranks->rank() > 0) options.out = &discarded;
  }
  return run_bench(a.names, options);
}

int main_of(int argc, char** argv) {
  Logger logger("gradwire", log_format(argc, argv));
  BenchArguments a;
  CLI::App app("Measure the speed of the parts of gradwire", "gradwire bench");
  app.set_version_flag("--version", "gradwire " + build_info());
  app.add_option("NAME", a.names, "Groups or single benchmarks; all by default");
  app.add_flag("--json", a.options.json, "One JSON object instead of a table");
  app.add_flag("--small", a.options.small, "Tiny sizes, only to check that the benchmarks run");
  app.add_option("--repeats", a.options.repeats, "Repeats of each measurement")->type_name("N");
  app.add_option("--beside", a.options.other_programs,
                 "Folder of programs to compare with, such as mlp and gpt")
      ->type_name("DIR");
  std::string footer = "Benchmarks:\n";
  for (const BenchHelp& help : bench_help()) footer += "  " + help.name + ": " + help.summary + "\n";
  app.footer(footer + "\nExamples:\n  gradwire bench\n  gradwire bench rounds --json\n");
  if (const auto code = parse_command_line(app, argc, argv, logger)) return *code;
  return exit_code_of([&] { return bench(a, launch_of(std::getenv)); },
                      [&](const std::string& what, int) { logger.complain(what); });
}

}  // namespace
}  // namespace gradwire

int main(int argc, char** argv) { return gradwire::run_main("gradwire", argc, argv, gradwire::main_of); }
