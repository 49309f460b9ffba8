#include "experiments/cli/list.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

#include "algorithms/algorithms.h"
#include "algorithms/optimizers/optimizer.h"
#include "base/suggest.h"
#include "config/experiment.h"
#include "engine/problems/problem.h"
#include "report/results_dir.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kWidth = 110;

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

std::string algorithms() {
  std::string out = "Algorithms: [algorithm] name = \"...\", and their parameters in [algorithm]\n";
  for (const AlgorithmInfo& m : all_algorithms()) {
    const AlgorithmTraits& f = m.traits;
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
  return out;
}

std::string compressors() {
  TextTable table;
  for (const CompressorHelp& c : compressor_help())
    table.row({c.parameters.empty() ? c.name : c.name + ":" + c.parameters, c.summary + "; " + c.constants});
  return "Compressors: [algorithm] compressor = \"NAME:KEY=VALUE,...\"; a count is a number, or "
         "a share of d, as in k=1%\n" +
         table.text();
}

std::string optimizers() {
  TextTable table;
  for (const OptimizerHelp& o : optimizer_help()) table.row({o.name + ":" + o.parameters, o.summary});
  return "Optimisers of local steps: [algorithm] local_optimizer = \"NAME:KEY=VALUE,...\"; g is the "
         "direction of the algorithm's step, gamma its step size\n" +
         table.text();
}

std::string what_it_reads(DataForm data) {
  switch (data) {
    case DataForm::kRows: return "samples";
    case DataForm::kText: return "text";
    case DataForm::kNone: break;
  }
  return "nothing";
}

std::string problems() {
  TextTable table;
  for (const ProblemInfo& kind : problem_types())
    table.row({std::string(kind.name), "reads " + what_it_reads(kind.data),
               kind.has_smoothness ? "exact theory steps" : "estimated theory steps",
               std::string(kind.summary)});
  return "Problems: [problem] kind = \"...\"\n" + table.text();
}

std::string keys() {
  TextTable table;
  for (const KeyHelp& key : experiment_keys())
    table.row({key.key, key.meaning + " [" + key.type +
                            (key.fallback.starts_with("required") ? "; " : "; default: ") + key.fallback +
                            "]"});
  return "Keys of an experiment file\n" + table.text();
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
  const std::string lines = table.text();
  return lines.empty() ? "" : "Runs that ended without results\n" + lines;
}

}  // namespace

std::string list_text(std::string_view topic, const fs::path& results) {
  if (topic == "algorithms") return algorithms();
  if (topic == "compressors") return compressors();
  if (topic == "optimizers") return optimizers();
  if (topic == "problems") return problems();
  if (topic == "keys") return keys();
  const std::string left = topic.empty() || topic == "runs" ? runs(results) : "";
  if (topic == "runs")
    return left.empty() ? "No run in " + results.string() + " ended without results\n" : left;
  if (topic.empty())
    return algorithms() + "\n" + compressors() + "\n" + optimizers() + "\n" + problems() + "\n" + keys() +
           (left.empty() ? "" : "\n" + left);
  throw UsageError("unknown topic '" + std::string(topic) + "'" +
                   suggest(topic, {"algorithms", "compressors", "optimizers", "problems", "keys", "runs"}));
}

}  // namespace gradwire
