#include "experiments/cli/list.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "algorithms/algorithms.h"
#include "algorithms/optimizers/optimizer.h"
#include "base/suggest.h"
#include "base/synonyms.h"
#include "config/experiment_spec.h"
#include "config/known_keys.h"
#include "config/shipped_experiments.h"
#include "engine/problems/problem.h"
#include "experiments/cli/data/catalogue.h"
#include "plotting/plot_column.h"
#include "report/columns.h"
#include "report/results_dir.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kWidth = 110;
constexpr const char* kRuns = "runs";

// Rows of cells, padded to the widest cell of their column. The last cell of a row is wrapped.
class TextTable {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& cells : rows_)
      for (std::size_t k = 0; k + 1 < cells.size(); ++k) {
        if (widths.size() <= k) widths.push_back(0);
        widths[k] = std::max(widths[k], cells[k].size());
      }
    std::string out;
    for (const auto& cells : rows_) {
      std::string line = "  ";
      for (std::size_t k = 0; k + 1 < cells.size(); ++k)
        line += cells[k] + std::string(widths[k] - cells[k].size() + 2, ' ');
      out += wrapped(line, cells.back());
    }
    return out;
  }

 private:
  // Returns `head` and then `text`, wrapped. Further lines are indented to the column where `text` begins.
  static std::string wrapped(const std::string& head, std::string text) {
    const std::size_t room = std::max<std::size_t>(30, kWidth - std::min(kWidth, head.size()));
    std::string out = head;
    while (text.size() > room) {
      std::size_t cut = text.rfind(' ', room);
      if (cut == std::string::npos) break;
      out += text.substr(0, cut) + "\n" + std::string(head.size(), ' ');
      text.erase(0, cut + 1);
    }
    return out + text + "\n";
  }

  std::vector<std::vector<std::string>> rows_;
};

std::string takes_text(const AlgorithmTraits& traits) {
  switch (traits.compressor_class) {
    case CompressorClass::kIdentity: return "no compressor";
    case CompressorClass::kUnbiased:
      return traits.strict ? "only unbiased compressors" : "unbiased compressors";
    case CompressorClass::kContractive: return "contractive compressors";
    case CompressorClass::kEither: return "unbiased or contractive compressors";
  }
  return "";
}

// Returns how a client that was killed can rejoin a run over a network.
std::string survival_text(ClientState state) {
  if (state == ClientState::kNone) return "clients keep no state: a lost client can always continue";
  if (has(state, ClientState::kPrivate)) return "a lost client can continue only from its --state";
  return std::string("a lost client continues from its --state, or ") +
         (has(state, ClientState::kMirrored) ? "from the server's copy (server.client_state_replicas)"
                                             : "from the state that the server sends again");
}

// Returns the title and the table, or "" if the table is empty.
std::string titled(const std::string& title, const TextTable& table) {
  const std::string text = table.text();
  return text.empty() ? "" : title + "\n" + text;
}

// The entries of a topic that are shown. All of them if `name` is empty.
struct Wanted {
  std::string name;
  bool operator()(std::string_view entry) const { return name.empty() || plain_spelling(entry) == name; }
};

std::string algorithms(const Wanted& wanted) {
  std::string out;
  for (const AlgorithmInfo& m : all_algorithms()) {
    const AlgorithmTraits& f = m.traits;
    if (!wanted(f.name)) continue;
    out += "\n" + std::string(f.name) + ": " + std::string(f.summary) + "\n  " + std::string(f.reference) +
           "; takes " + takes_text(f) + (f.asynchronous ? "; asynchronous" : "") +
           (f.stochastic ? "; batch" : "") + (f.partial ? "; participation" : "") +
           (f.adds_replies ? "; relays may add up replies" : "") + "\n  " + survival_text(f.client_state) +
           "\n";
    TextTable table;
    for (const ParameterHelp& p : m.parameters)
      table.row({p.name, p.fallback.empty() ? "-" : p.fallback, p.meaning});
    out += table.text();
  }
  return out.empty() ? ""
                     : "Algorithms: [algorithm] name = \"...\", and their parameters in [algorithm]\n" + out;
}

std::string compressors(const Wanted& wanted) {
  TextTable table;
  for (const CompressorHelp& c : compressor_help())
    if (wanted(c.name.substr(0, c.name.find('('))))
      table.row(
          {c.parameters.empty() ? c.name : c.name + ":" + c.parameters, c.summary + "; " + c.constants});
  return titled(
      "Compressors: [algorithm] compressor = \"NAME:KEY=VALUE,...\"; a count is a number, or a share of d, "
      "as in k=1%",
      table);
}

std::string optimizers(const Wanted& wanted) {
  TextTable table;
  for (const OptimizerHelp& o : optimizer_help())
    if (wanted(o.name)) table.row({o.name + ":" + o.parameters, o.summary});
  return titled(
      "Optimisers of local steps: [algorithm] local_optimizer = \"NAME:KEY=VALUE,...\"; g is the "
      "direction of the algorithm's step, gamma its step size",
      table);
}

std::string problems(const Wanted& wanted) {
  TextTable table;
  for (const ProblemInfo& kind : problem_types())
    if (wanted(kind.name))
      table.row({std::string(kind.name), "reads " + std::string(name_of(kind.data)),
                 kind.has_smoothness ? "exact theory steps" : "estimated theory steps",
                 std::string(kind.summary)});
  return titled("Problems: [problem] kind = \"...\"", table);
}

// Shows the keys whose path or last part is wanted.
std::string keys(const Wanted& wanted) {
  TextTable table;
  for (const KeyHelp& key : experiment_keys())
    if (wanted(key.key) || wanted(key.key.substr(key.key.find('.') + 1)))
      table.row({key.key, key.meaning + " [" + key.type +
                              (key.fallback.starts_with("required") ? "; " : "; default: ") + key.fallback +
                              "]"});
  return titled("Keys of an experiment file", table);
}

std::string metrics(const Wanted& wanted) {
  TextTable table;
  const RoundRecord record;
  metric_columns(record, [&](std::string_view name, const auto&, std::string_view meaning) {
    if (wanted(name)) table.row({std::string(name), std::string(meaning)});
  });
  return titled("Columns of metrics.csv, also for gradwire plot --x and --y", table);
}

std::string axes(const Wanted& wanted) {
  TextTable table;
  for (const auto& [option, columns] : {std::pair("--x", x_columns()), std::pair("--y", y_columns())})
    for (const PlotColumn& column : columns)
      if (wanted(column.name)) {
        std::string label = column.label;
        if (const std::size_t unit = label.find("{}"); unit != label.npos)
          label.replace(unit, 2, "kB, MB, ...");
        table.row({std::string(option) + " " + column.name, label});
      }
  return titled("More names for gradwire plot", table);
}

std::string data(const Wanted& wanted) {
  std::string text;
  for (const DataSet& set : data_sets())
    if (wanted(set.name)) text += "  " + data_set_text(set) + "\n";
  return text.empty() ? "" : "Public data sets: [problem] data = \"...\"; gradwire data fetch NAME\n" + text;
}

std::string experiments(const Wanted& wanted) {
  TextTable table;
  for (const ShippedExperiment& shipped : shipped_experiments()) {
    const std::string_view first = shipped.toml.substr(0, shipped.toml.find('\n'));
    if (wanted(shipped.name))
      table.row({std::string(shipped.name), std::string(first.starts_with("# ") ? first.substr(2) : "")});
  }
  return titled("Shipped experiments: gradwire run NAME", table);
}

// Returns the number of rows in a metrics.csv.
std::size_t rows_in(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  const auto lines = std::count(std::istreambuf_iterator<char>(in), {}, '\n');
  return lines > 0 ? static_cast<std::size_t>(lines) - 1 : 0;  // the first line is the header
}

// Returns the runs that left metrics but no results. Empty if there are none.
std::string runs(const fs::path& results) {
  TextTable table;
  for (const LeftRun& left : left_runs(results)) {
    const std::size_t rows = rows_in(left.folder / "metrics.csv");
    if (rows == 0) continue;
    table.row(
        {left.folder.string(), "metrics.csv with " + std::to_string(rows) + (rows == 1 ? " row" : " rows") +
                                   ", of a run that " +
                                   (left.is_kept ? "failed; remove the folder if you do not need it"
                                                 : "was killed; the next run in this folder removes it") +
                                   (left.has_checkpoint ? "; the same gradwire run resumes it" : "")});
  }
  return titled("Runs that ended without results", table);
}

struct Topic {
  std::string name;
  std::string (*text)(const Wanted&);
  bool is_in_all = true;  // `gradwire list` without a topic shows it
};

const std::vector<Topic>& topics() {
  static const std::vector<Topic> all = {
      {"algorithms", algorithms},
      {"compressors", compressors},
      {"optimizers", optimizers},
      {"problems", problems},
      {"keys", keys},
      {"metrics", [](const Wanted& wanted) { return metrics(wanted) + axes(wanted); }, false},
      {"data", data, false},
      {"experiments", experiments, false},
  };
  return all;
}

// Returns every entry of that name, whatever its topic is. Empty if there is none.
std::string entries(const std::string& word) {
  const std::string key = key_of_word(word).value_or("");
  std::string text;
  for (const Topic& topic : topics()) {
    std::string found = topic.text({plain_spelling(word)});
    if (found.empty() && topic.name == "keys" && !key.empty()) found = topic.text({key});
    if (!found.empty()) text += (text.empty() ? "" : "\n") + found;
  }
  return text;
}

std::vector<std::string> topic_names() {
  std::vector<std::string> names;
  for (const Topic& topic : topics()) names.push_back(topic.name);
  names.push_back(kRuns);
  return names;
}

std::vector<std::string> entry_names() {
  std::vector<std::string> names = topic_names();
  for (const AlgorithmInfo& algorithm : all_algorithms()) names.emplace_back(algorithm.traits.name);
  for (const CompressorHelp& compressor : compressor_help()) names.push_back(compressor.name);
  for (const ProblemInfo& kind : problem_types()) names.emplace_back(kind.name);
  return names;
}

}  // namespace

std::string list_text(std::string_view word, const fs::path& results) {
  const std::vector<std::string> names = topic_names();
  const auto meant = meant_name(word, names);
  const std::string left = word.empty() || (meant && meant->name == kRuns) ? runs(results) : "";
  if (meant && meant->name == kRuns)
    return left.empty() ? "No run in " + results.string() + " ended without results\n" : left;
  std::string all;
  for (const Topic& topic : topics()) {
    if (meant && topic.name == meant->name) return topic.text({});
    if (topic.is_in_all) all += (all.empty() ? "" : "\n") + topic.text({});
  }
  if (word.empty()) return all + (left.empty() ? "" : "\n" + left);
  std::string found = entries(std::string(word));
  if (!found.empty()) return found;
  std::string near = did_you_mean(word, entry_names());
  throw UsageError("unknown topic or name '" + std::string(word) + "'" +
                   (near.empty() ? suggest(word, names) : near));
}

}  // namespace gradwire
