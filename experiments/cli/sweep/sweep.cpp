#include "experiments/cli/sweep/sweep.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <unistd.h>

#include "experiments/cli/run/run.h"
#include "experiments/cli/sweep/shared_problems.h"
#include "parallel/processors.h"
#include "parallel/thread_pool.h"
#include "plotting/plot.h"
#include "plotting/plot_files.h"
#include "plotting/plot_width.h"
#include "report/earlier_results.h"
#include "report/metrics_reader.h"
#include "report/results_dir.h"
#include "storage/atomic_file.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr const char *kRuns = "runs", *kSweepFile = "sweep.toml", *kProgramFile = "program.txt";

std::string read_text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the path of the file with the reason why a run failed, one line. The file is next to the run's
// folder.
fs::path failure_file(const fs::path& folder, const RunOfSweep& run) {
  return folder / kRuns / (run.id + ".failed");
}

fs::path folder_of(const SweepPlan& plan, const SweepRequest& request) {
  return request.out.empty() ? fs::path("results") / plan.name : request.out;
}

// Records what the program brings. Keys cannot tell its functions and samples apart, so this refuses a folder
// with results of others.
void record_program(const fs::path& folder, const std::string& program) {
  if (program.empty()) return;
  const fs::path file = folder / kProgramFile;
  const fs::directory_iterator runs(folder / kRuns);
  if (fs::exists(file) && read_text_of(file) != program + "\n" &&
      std::any_of(begin(runs), end(runs), [](const auto& run) { return !outcome_in(run).empty(); }))
    throw UsageError(
        folder.string() +
        ": its runs have other functions, samples or algorithms of the program; choose another folder (out), "
        "or move these runs aside (fresh)");
  write_whole(file, program + "\n");
}

// Makes the folder. Rejects a folder with other contents.
fs::path open_folder(const SweepPlan& plan, const SweepRequest& request) {
  const fs::path folder = folder_of(plan, request);
  std::error_code error;
  if (fs::exists(folder) && !fs::is_directory(folder))
    throw UsageError(folder.string() + ": is a file, not a folder for results; choose another with --out");
  if (fs::exists(folder) && !fs::is_empty(folder) && !fs::exists(folder / kSweepFile))
    throw UsageError(
        folder.string() +
        ": the folder is not empty and does not contain a sweep; choose another with --out, or move this one "
        "away");
  if (request.fresh && fs::exists(folder / kSweepFile)) {
    const fs::path kept = set_aside(folder);
    if (request.log) request.log(LogLine("moved the earlier sweep to " + kept.string()));
  }
  fs::create_directories(folder / kRuns, error);
  if (error)
    throw UsageError(folder.string() + ": cannot be used for results (" + error.message() +
                     "); choose another with --out");
  record_program(folder, request.program);
  write_whole(folder / kSweepFile, plan.text);
  return fs::absolute(folder).lexically_normal();
}

// The progress of a sweep: a log line from time to time, with the number of runs done.
class SweepProgress {
 public:
  SweepProgress(std::size_t runs, const SweepRequest& request) : runs_(runs), request_(request) {}

  void run_done() {
    const std::lock_guard lock(mutex_);
    ++done_;
    if (request_.on_run) request_.on_run(done_, runs_);
    const auto now = Clock::now();
    if (now < next_ && done_ < runs_) return;
    next_ = now + interval_;
    interval_ = std::min(interval_ * 3 / 2, std::chrono::duration<double>(60.0));
    if (request_.quiet || !request_.log) return;
    const double seconds = std::chrono::duration<double>(now - started_).count();
    const double left = seconds / static_cast<double>(done_) * static_cast<double>(runs_ - done_);
    std::string line = std::to_string(done_) + " of " + std::to_string(runs_) + " runs done";
    if (done_ < runs_) line += ", about " + std::to_string(std::llround(std::ceil(left))) + " s to go";
    request_.log(LogLine(line));
  }
  void note(const LogLine& line) {
    const std::lock_guard lock(mutex_);
    if (request_.log) request_.log(line);
  }

 private:
  using Clock = std::chrono::steady_clock;
  const std::size_t runs_;
  const SweepRequest& request_;
  std::mutex mutex_;
  std::size_t done_ = 0;
  const Clock::time_point started_ = Clock::now();
  std::chrono::duration<double> interval_{2};
  std::chrono::time_point<Clock, std::chrono::duration<double>> next_ = started_ + interval_;
};

// Returns the runs of the shard that have no results. Runs of the same problem are consecutive.
std::vector<std::size_t> runs_to_do(const SweepPlan& plan, const fs::path& folder, Shard shard) {
  std::vector<std::pair<std::string, std::size_t>> list;
  for (std::size_t k = shard.index; k < plan.runs.size(); k += shard.count)
    if (outcome_in(folder_of_run(folder, plan.runs[k])).empty())
      list.emplace_back(SharedProblems::key_of(plan.runs[k].settings), k);
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::size_t> runs;
  for (const auto& [key, k] : list) runs.push_back(k);
  return runs;
}

// Does one run. Returns false if it was stopped. Throws as run_experiment() does.
bool run_one(const SweepPlan& plan, const RunOfSweep& run, const SweepRequest& sweep, const fs::path& folder,
             SharedProblems& problems, const std::atomic<bool>& stop) {
  RunRequest request;
  request.out = folder_of_run(folder, run);
  request.threads = sweep.threads;
  request.verbosity = Verbosity::kQuiet;
  request.checkpoint_seconds = 0;
  request.resume = Resume::kFresh;
  request.earlier = EarlierResults::kOverwrite;  // only runs that were stopped are repeated
  request.figure = false;
  request.prepare = [&](const LoadedExperiment& loaded) { return problems.prepare(loaded); };
  LoadedExperiment loaded = load_run(plan, run);
  if (sweep.complete) sweep.complete(loaded);
  return run_experiment(loaded, request, stop).run.result.outcome != Outcome::kStopped;
}

std::vector<EndedRun> ended_runs(const SweepPlan& plan, const fs::path& folder) {
  std::vector<EndedRun> ended;
  for (std::size_t k = 0; k < plan.runs.size(); ++k) {
    const fs::path run = folder_of_run(folder, plan.runs[k]);
    const std::string outcome = outcome_in(run);
    if (!outcome.empty()) ended.push_back({k, outcome, read_metrics(run / "metrics.csv")});
  }
  return ended;
}

// Returns `ended` and the runs that failed, in the order of the plan.
std::vector<EndedRun> with_failed_runs(const SweepPlan& plan, const fs::path& folder,
                                       const std::vector<EndedRun>& ended) {
  std::vector<EndedRun> all;
  auto next = ended.begin();
  for (std::size_t k = 0; k < plan.runs.size(); ++k) {
    if (next != ended.end() && next->run == k)
      all.push_back(*next++);
    else if (fs::exists(failure_file(folder, plan.runs[k])))
      all.push_back({k, "failed", {}});
  }
  return all;
}

// Writes the tables and the figure of the runs that have ended.
void sum_up(const SweepPlan& plan, const fs::path& folder, const SweepRequest& request, SweepReport& report) {
  const std::vector<EndedRun> ended = ended_runs(plan, folder);
  report.folder = folder;
  report.missing = plan.runs.size() - ended.size();
  write_whole(folder / "runs.csv", runs_csv(plan, with_failed_runs(plan, folder, ended)));
  if (ended.empty()) return;
  report.best = best_of(plan, ended);
  const std::vector<BestOf>& best = report.best;
  report.table = table_text(plan, best);
  write_whole(folder / "best.csv", best_csv(plan, best));
  PlotRequest figure;
  figure.out = folder / "plot.svg";
  figure.csv = true;
  figure.tikz = request.tikz;
  figure.panels = request.panels.empty() ? plan.figure.panels : request.panels;
  figure.keys.by = plan.figure.by;
  // Each curve is one algorithm, although its best step may differ between panels.
  if (!plan.figure.by.empty()) figure.keys.aside = plan.tuned;
  for (const BestOf& row : best)
    for (const std::size_t run : row.runs) figure.folders.push_back(folder_of_run(folder, plan.runs[run]));
  plot_command(figure);
  if (request.figure.empty()) return;
  figure.out = request.figure;
  figure.width = request.width;
  figure.csv = figure.tikz = false;
  plot_command(figure);
}

// Throws UsageError if the user's figure could not be drawn after the runs.
void check_figure(const SweepRequest& request) {
  if (!request.figure.empty()) check_format("--figure", request.figure);
  if (!request.width.empty()) parse_width(request.width);
  if (!request.width.empty() && request.figure.empty())
    throw UsageError("--width is the width of the figure that --figure names; add --figure FILE");
  for (const std::string& panel : request.panels)
    if (const std::string trouble = trouble_of_panel(panel); !trouble.empty())
      throw UsageError("--panel " + panel + ": " + trouble);
}

}  // namespace

fs::path folder_of_run(const fs::path& sweep, const RunOfSweep& run) { return sweep / kRuns / run.id; }

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char *const end = text.data() + text.size(), *const slash = std::find(text.data(), end, '/');
  const auto first = std::from_chars(text.data(), slash, shard.index);
  const auto second = std::from_chars(slash == end ? end : slash + 1, end, shard.count);
  if (first.ec != std::errc() || first.ptr != slash || second.ec != std::errc() || second.ptr != end ||
      shard.index == 0 || shard.index > shard.count)
    throw UsageError("--shard " + text + ": write I/N, the I-th of N parts, as in 1/4");
  --shard.index;
  return shard;
}

SweepReport run_sweep(const SweepPlan& plan, const SweepRequest& request, const std::atomic<bool>& stop) {
  check_figure(request);
  const fs::path folder = open_folder(plan, request);
  const std::vector<std::size_t> to_do = runs_to_do(plan, folder, request.shard);
  SweepReport report;
  const std::size_t share =
      (plan.runs.size() - request.shard.index + request.shard.count - 1) / request.shard.count;
  report.found = share - to_do.size();
  SharedProblems problems(request.brought);
  for (const std::size_t k : to_do) problems.expect(plan.runs[k].settings);
  SweepProgress progress(to_do.size(), request);
  if (report.found > 0 && !request.quiet)
    progress.note(LogLine(std::to_string(report.found) + " of " + std::to_string(share) +
                          " runs have results already and are not repeated; --fresh starts again"));
  std::mutex mutex;
  std::set<std::string> reasons;
  // Many runs may fail for one reason, such as a missing file. If the disk is full, only the log has the
  // reason.
  const auto note_failure = [&](const RunOfSweep& run, const std::string& reason) {
    const std::string label = label_of(run, plan.varied);
    std::ofstream(failure_file(folder, run)) << reason << '\n';
    const std::lock_guard lock(mutex);
    report.failed.push_back((label.empty() ? "the run" : label) + ": " + reason);
    progress.note(LogLine::warning(reasons.insert(reason).second
                                       ? "failed: " + report.failed.back()
                                       : "failed for a reason given above: " + label));
  };
  const unsigned jobs = request.jobs > 0 ? request.jobs : usable_processors();
  ThreadPool pool(static_cast<unsigned>(std::clamp<std::size_t>(to_do.size(), 1, jobs)));
  pool.for_each(to_do.size(), [&](unsigned, std::size_t item) {
    if (stop) return;
    const RunOfSweep& run = plan.runs[to_do[item]];
    bool ended = false, failed = false;
    std::error_code ignored;
    fs::remove(failure_file(folder, run), ignored);
    try {
      ended = run_one(plan, run, request, folder, problems, stop);
    } catch (const std::exception& error) {
      failed = true;
      note_failure(run,
                   request.is_of_program ? without_place(error.what(), plan.file.string()) : error.what());
    }
    problems.leave(run.settings);
    if (ended || failed) progress.run_done();
    const std::lock_guard lock(mutex);
    report.done += ended;
  });
  report.stopped = stop;
  sum_up(plan, folder, request, report);
  return report;
}

SweepReport merge_sweep(const SweepPlan& plan, const SweepRequest& request,
                        const std::vector<fs::path>& folders) {
  for (const fs::path& from : folders)
    if (!fs::is_directory(from / kRuns))
      throw UsageError(from.string() +
                       ": does not contain a sweep; name the folder that gradwire sweep wrote");
  check_figure(request);
  const fs::path folder = open_folder(plan, request);
  SweepReport report;
  for (const RunOfSweep& run : plan.runs) {
    const fs::path to = folder_of_run(folder, run);
    if (!outcome_in(to).empty()) {
      ++report.found;
      continue;
    }
    std::string failure;
    for (const fs::path& from : folders) {
      if (failure.empty()) failure = read_text_of(failure_file(from, run));
      if (outcome_in(folder_of_run(from, run)).empty()) continue;
      const fs::path draft = to.string() + ".new-" + std::to_string(getpid());
      fs::remove_all(draft);
      fs::copy(folder_of_run(from, run), draft, fs::copy_options::recursive);
      fs::remove_all(to);  // may be there from a stopped run
      fs::rename(draft, to);
      fs::remove(failure_file(folder, run));
      ++report.done;
      failure.clear();
      break;
    }
    if (failure.empty()) continue;
    std::ofstream(failure_file(folder, run)) << failure;
    report.failed.push_back(label_of(run, plan.varied) + ": " + failure.substr(0, failure.find('\n')));
  }
  sum_up(plan, folder, request, report);
  return report;
}

}  // namespace gradwire
