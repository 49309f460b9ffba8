#include "plotting/plot_runs.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "config/experiment_file.h"
#include "config/renamed_entries.h"
#include "config/renamed_keys.h"
#include "config/toml_reader.h"
#include "parallel/processors.h"
#include "parallel/thread_pool.h"
#include "report/json.h"
#include "report/results_dir.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr int kDeepest = 8;  // levels of folders that are searched
constexpr std::size_t kMostFound = 10'000;
constexpr std::uintmax_t kLargestSummary = 16u << 20, kLargestRunsCsv = 64u << 20;

std::string text_of_file(const fs::path& file, std::uintmax_t at_most) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error || size > at_most) return "";
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the line number of each run in the runs.csv of a sweep, which has the order of the sweep's file.
// Empty if `folder` does not have the runs of a sweep.
std::map<std::string, std::size_t> lines_in_sweep(const fs::path& folder) {
  std::map<std::string, std::size_t> lines;
  if (folder.filename() != "runs") return lines;
  std::istringstream text(text_of_file(folder.parent_path() / "runs.csv", kLargestRunsCsv));
  for (std::string line; std::getline(text, line);)
    lines.emplace(line.substr(0, line.find(',')), lines.size());
  return lines;
}

// Splits a line of CSV as csv_field() writes it.
std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

// Returns the runs that the best.csv of a sweep names, in its order, and adds the tuned keys to `tuned`.
// Empty if `folder` does not have such a file.
std::vector<fs::path> best_runs(const fs::path& folder, std::vector<std::string>& tuned) {
  std::error_code ignored;
  if (!fs::is_directory(folder / "runs", ignored)) return {};
  std::istringstream text(text_of_file(folder / "best.csv", kLargestRunsCsv));
  std::vector<fs::path> runs;
  std::string line;
  std::getline(text, line);
  while (std::getline(text, line)) {
    const std::vector<std::string> fields = split_csv(line);
    if (fields.size() < 3) continue;
    std::istringstream ids(fields.back()), keys(fields[1]);
    for (std::string id; ids >> id;)
      if (identify_run(folder / "runs" / id)) runs.push_back(folder / "runs" / id);
    for (std::string word, last; keys >> word; last = word)
      if (word == "=" && std::find(tuned.begin(), tuned.end(), last) == tuned.end()) tuned.push_back(last);
  }
  return runs;
}

void add_runs_below(const fs::path& folder, int depth, std::vector<fs::path>& runs,
                    std::vector<std::string>* tuned) {
  if (identify_run(folder)) {
    runs.push_back(folder);
    return;
  }
  if (depth == kDeepest || runs.size() > kMostFound) return;
  if (tuned != nullptr)
    if (const std::vector<fs::path> best = best_runs(folder, *tuned); !best.empty()) {
      runs.insert(runs.end(), best.begin(), best.end());
      return;
    }
  std::vector<fs::path> below;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored) &&
        !at->path().filename().string().starts_with('.'))
      below.push_back(at->path());
  }
  const std::map<std::string, std::size_t> lines = lines_in_sweep(folder);
  const auto place = [&](const fs::path& run) {
    const auto at = lines.find(run.filename().string());
    return std::pair(at == lines.end() ? lines.size() : at->second, run);
  };
  std::sort(below.begin(), below.end(),
            [&](const fs::path& a, const fs::path& b) { return place(a) < place(b); });
  for (const fs::path& next : below) add_runs_below(next, depth + 1, runs, tuned);
}

// Restores the values in "asked" of summary.json: keys whose values theory or a default resolved later.
void put_asked_back(RunKeys& keys, const fs::path& summary) {
  const Json json = Json::parse(text_of_file(summary, kLargestSummary), nullptr, false);
  if (!json.is_object() || !json.contains("asked") || !json["asked"].is_object()) return;
  for (const auto& [name, value] : json["asked"].items()) {
    if (!value.is_string()) continue;
    const std::string key = current_path(name);
    const auto at = std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.first == key; });
    if (at != keys.end()) at->second = value.get<std::string>();
  }
}

// Returns the keys with their current names; a run of an earlier version may have old names.
RunKeys keys_of(const fs::path& folder) {
  RunKeys keys;
  std::vector<std::string> ignored;
  for (TomlEntry& entry : read_toml(text_of_file(folder / "config.toml", kMaxExperimentBytes))) {
    if (entry.is_header || std::holds_alternative<OtherValue>(entry.value)) continue;
    use_current_names(entry, "", ignored);
    keys.emplace_back(entry.section.empty() ? entry.key : entry.section + "." + entry.key,
                      toml_literal(entry.value));
  }
  put_asked_back(keys, folder / "summary.json");
  return keys;
}

PlotRun read_run(const fs::path& folder, std::span<const std::string> wanted) {
  if (!identify_run(folder))
    throw UsageError(
        folder.string() +
        ": has no results of a run (config.toml and metrics.csv); use a folder that gradwire run wrote");
  PlotRun run{folder, keys_of(folder), read_metrics_table(folder / "metrics.csv", wanted), {}};
  if (run.metrics.rows == 0)
    throw UsageError(run.file().string() +
                     ": has no rows to plot; repeat the run with run.evaluate_every above 0");
  return run;
}

}  // namespace

std::string value_of_key(const RunKeys& keys, std::string_view key) {
  const auto at = std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.first == key; });
  if (at == keys.end()) return "";
  const std::string& value = at->second;
  return value.size() >= 2 && value.front() == '"' ? value.substr(1, value.size() - 2) : value;
}

std::vector<fs::path> find_runs(std::span<const fs::path> paths, std::vector<std::string>* tuned) {
  std::vector<fs::path> runs;
  std::error_code ignored;
  for (const fs::path& path : paths) {
    if (!fs::exists(path, ignored))
      throw UsageError(path.string() + ": no such folder; name a folder of results, as in results/" +
                       (path.has_filename() ? path.filename().string() : "NAME"));
    const std::size_t before = runs.size();
    add_runs_below(path, 0, runs, tuned);
    if (runs.size() == before)
      throw UsageError(
          path.string() +
          ": has no results of a run, nor have its folders (config.toml and metrics.csv); use a folder that "
          "gradwire run wrote, or one that contains such folders");
    if (runs.size() > kMostFound)
      throw UsageError(path.string() + ": contains more than " + std::to_string(kMostFound) +
                       " runs; use a smaller folder");
  }
  return runs;
}

std::vector<PlotRun> read_runs(std::span<const fs::path> folders, std::span<const std::string> wanted) {
  std::vector<PlotRun> runs(folders.size());
  const std::size_t cores = usable_processors();
  ThreadPool pool(static_cast<unsigned>(std::clamp<std::size_t>(folders.size(), 1, cores)));
  pool.for_each(folders.size(), [&](unsigned, std::size_t k) { runs[k] = read_run(folders[k], wanted); });
  return runs;
}

}  // namespace gradwire
