#include "report/earlier_results.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/experiment_file.h"
#include "config/settings.h"
#include "report/columns.h"
#include "report/json.h"
#include "report/metrics_reader.h"
#include "report/results_dir.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::streamsize kBlockBytes = 1 << 16;

bool same_bytes(const fs::path& one, const fs::path& other) {
  std::error_code error;
  if (fs::file_size(one, error) != fs::file_size(other, error) || error) return false;
  std::ifstream a(one, std::ios::binary), b(other, std::ios::binary);
  std::vector<char> x(kBlockBytes), y(kBlockBytes);
  while (a && b) {
    a.read(x.data(), kBlockBytes);
    b.read(y.data(), kBlockBytes);
    if (a.gcount() != b.gcount() || !std::equal(x.begin(), x.begin() + a.gcount(), y.begin())) return false;
  }
  return a.eof() && b.eof();
}

// Returns the rows of a metrics.csv as text. Leaves out the seconds, except those of a virtual clock.
std::vector<std::string> rows_in(const fs::path& file) {
  std::vector<std::string> rows;
  for (RoundRecord record : read_metrics(file)) {
    record.seconds = 0;
    rows.push_back(metrics_line(record));
  }
  return rows;
}

}  // namespace

std::string outcome_in(const fs::path& results) {
  std::ifstream in(results / "summary.json", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const Json summary = Json::parse(text, nullptr, false);
  if (!summary.is_object() || !summary.contains("outcome") || !summary["outcome"].is_string()) return "";
  const std::string outcome = summary["outcome"];
  return outcome == "stopped" ? "" : outcome;
}

std::string changed_setting(const fs::path& results, const ExperimentSpec& resolved) {
  try {
    return first_difference(resolved, load_experiment(results / "config.toml").experiment, Compared::kAll);
  } catch (const ExperimentError& error) {
    return error.what();
  }
}

void check_same_experiment(const fs::path& results, const ExperimentSpec& resolved) {
  if (!identify_run(results) || outcome_in(results).empty()) return;
  if (const std::string changed = changed_setting(results, resolved); !changed.empty())
    throw UsageError(results.string() + ": has the results of other settings: " + changed +
                     "; choose another folder with --out, or replace them with --overwrite");
}

bool same_results(const fs::path& one, const fs::path& other) {
  try {
    return same_bytes(one / "model.bin", other / "model.bin") &&
           rows_in(one / "metrics.csv") == rows_in(other / "metrics.csv");
  } catch (const std::runtime_error&) {  // a metrics.csv cannot be read
    return false;
  }
}

fs::path unused_name(const fs::path& wanted) {
  fs::path name = wanted;
  for (int k = 2; fs::exists(fs::symlink_status(name)); ++k) name = wanted.string() + "-" + std::to_string(k);
  return name;
}

fs::path set_aside(const fs::path& folder) {
  const fs::path name = unused_name(folder.string() + ".before");
  fs::rename(folder, name);
  return name;
}

}  // namespace gradwire
