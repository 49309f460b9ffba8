#include "experiments/cli/data/data_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>
#include <unistd.h>

#include "engine/data/readers/source.h"
#include "experiments/cli/data/catalogue.h"
#include "experiments/cli/data/fetch.h"
#include "report/results_dir.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

// A line of progress on a terminal, which is rewritten in place.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }
  void show(const std::string& name, std::uint64_t done, std::uint64_t size) {
    const auto now = std::chrono::steady_clock::now();
    if (isatty(STDERR_FILENO) != 1 || now - shown_ < std::chrono::milliseconds(200)) return;
    shown_ = now;
    constexpr double kMega = 1e6;
    std::fprintf(stderr, "\r%s  %.1f", name.c_str(), static_cast<double>(done) / kMega);
    if (size > 0) std::fprintf(stderr, " of %.1f", static_cast<double>(size) / kMega);
    std::fputs(" MB\x1b[K", stderr);
    is_open_ = true;
  }
  void clear() {
    if (is_open_) std::fputs("\r\x1b[K", stderr);
    is_open_ = false;
  }

 private:
  std::chrono::steady_clock::time_point shown_;
  bool is_open_ = false;
};

int fetch(const DataArguments& a, const std::atomic<bool>& stop) {
  std::vector<const DataSet*> sets;
  for (const std::string& name : a.names) sets.push_back(&find_data_set(name));
  FetchRequest request;
  request.folder = data_cache();
  if (request.folder.empty())
    throw UsageError("no folder for the data is known; name one in $GRADWIRE_CACHE");
  if (!a.mirror.empty() && !a.mirror.starts_with("https://") && !a.mirror.starts_with("http://"))
    throw UsageError("--mirror must begin with https:// or http://, not '" + a.mirror.substr(0, 64) + "'");
  request.mirror = a.mirror;
  request.stop = &stop;
  ProgressLine progress;
  request.say = [&](const std::string& line) {
    progress.clear();
    if (!a.quiet) std::cout << line << std::endl;
  };
  if (!a.quiet)
    request.on_progress = [&](const std::string& name, std::uint64_t done, std::uint64_t size) {
      progress.show(name, done, size);
    };
  for (const DataSet* set : sets) fetch_data_set(*set, request);
  return 0;
}

}  // namespace

void add_data_command(CLI::App& app, DataArguments& a) {
  CLI::App* data = app.add_subcommand("data", "List public data sets, or fetch them");
  data->require_subcommand(1);
  CLI::App* list = data->add_subcommand(
      "list", "Show the data sets, their names in an experiment, and whether you have them");
  list->footer("Examples:\n  gradwire data list\n");
  CLI::App* fetch =
      data->add_subcommand("fetch", "Download data sets into the cache, and check their SHA-256");
  fetch->add_option("NAME", a.names, "A name from gradwire data list")->required()->type_name("");
  fetch->add_option("--mirror", a.mirror, "Fetch the files from this folder of another server")
      ->type_name("URL");
  fetch->add_flag("--quiet", a.quiet, "Print only errors");
  fetch->footer(R"(If a download breaks off, the same command continues it.

Examples:
  gradwire data fetch a9a mnist
  gradwire data fetch w8a --mirror http://files.example.org/libsvm
)");
  data->footer("Examples:\n  gradwire data list\n  gradwire data fetch a9a mnist\n");
}

int run_data_command(const CLI::App& app, const DataArguments& a, const std::atomic<bool>& stop) {
  if (!app.get_subcommand("data")->got_subcommand("list")) return fetch(a, stop);
  for (const DataSet& set : data_sets()) std::cout << data_set_text(set) << '\n';
  return 0;
}

}  // namespace gradwire
