#include "experiments/cli/run/new_experiment.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

#include "base/value.h"
#include "base/word_list.h"
#include "config/experiment_file.h"
#include "config/known_keys.h"
#include "engine/problems/problem.h"
#include "experiments/cli/run/data_facts.h"
#include "report/results_dir.h"
#include "simulation/prepare.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostClients = 10, kSamplesPerClient = 20;
constexpr std::size_t kMostNamed = 200, kLineWidth = 100;  // columns in a comment, and letters of its lines
constexpr std::size_t kNamed = 20;                         // columns in a log line

constexpr const char* kNumbering = " (another value in each line)";

std::string number_of(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Returns "11 of 344 lines".
std::string of_lines(const DataFacts& facts) {
  return std::to_string(facts.left_out) + " of " + std::to_string(facts.left_out + facts.samples) + " lines";
}

// Returns the words as lines of a comment.
std::string comment(const std::string& text) {
  std::string lines = "#", line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (line.size() + end - at > kLineWidth) lines += line + "\n#  ", line.clear();
    line += " " + text.substr(at, end - at);
    at = end + 1;
  }
  return lines + line + "\n";
}

std::string head(const std::string& name, const std::string& source, const std::string& facts,
                 const std::string& others) {
  const std::string file = name + ".toml";
  return "# Written by gradwire new from " + source + ": " + facts + ".\n#   gradwire run " + file +
         "\n#   gradwire compare " + file + " --algorithms " + others +
         " --tune\n# `gradwire list keys` shows all keys, `gradwire list algorithms` all algorithms.\n";
}

// Returns the keys of [problem] that say how to read a table.
std::string table_keys(const DataFacts& facts) {
  if (facts.label.empty()) return "";
  std::string text = comment("The columns: " + some_of(facts.columns, kMostNamed) + ".") +
                     "label = " + toml_literal(facts.label) + "\n";
  if (!facts.numbering.empty())
    text += comment("Without " + some_of(facts.numbering, kMostNamed) + kNumbering + ":") +
            "columns = " + toml_literal(facts.kept) + "\n";
  if (facts.left_out > 0)
    text += "missing = \"drop\"        # leaves out the " + of_lines(facts) +
            " that lack a value; \"mean\" takes the mean of the column\n";
  return text;
}

std::string normalize_key(const std::string& source) {
  return source.starts_with("csv:") || source.starts_with("np")
             ? "normalize = \"standard\"  # features of mean 0 and deviation 1, so steps may be large\n"
             : "";
}

std::string clients(std::size_t samples) {
  const std::size_t count = std::clamp<std::size_t>(samples / kSamplesPerClient, 1, kMostClients);
  return "\n[clients]\ncount = " + std::to_string(count) +
         "\npartition = \"iid\"       # shuffled; \"dirichlet\" gives clients different shares of the "
         "labels\n";
}

std::string linear_experiment(const std::string& source, const DataFacts& facts) {
  const bool classes = facts.has_classes();
  return std::string("\n[problem]\nkind = ") +
         (classes ? "\"logistic\"       # for two labels\n" : "\"least_squares\"  # for real labels\n") +
         "data = " + toml_literal(source) + "\n" + table_keys(facts) + normalize_key(source) +
         "regularizer = \"l2\"      # f is strongly convex, so f* exists\nlambda = 0.001\nbias = true\n" +
         (classes ? "test_share = 0.2        # held out, to measure accuracy\n" : "") +
         clients(facts.samples) +
         "\n[algorithm]\nname = \"diana\"\ncompressor = \"randk:k=10%\"   # each client sends a tenth of its "
         "numbers\nstep_size = \"theory\"    # of DIANA's theorem; \"theory*4\" is four times that\n"
         "\n[run]\nrounds = 1000\nevaluate_every = 10\n";
}

std::string softmax_experiment(const std::string& source, const DataFacts& facts) {
  return "precision = \"fp32\"\n\n[problem]\nkind = \"mlp\"            # a network; hidden = [] is softmax "
         "regression\ndata = " +
         toml_literal(source) + "\n" + table_keys(facts) + normalize_key(source) +
         "hidden = [32]\ntest_share = 0.2        # held out, to measure accuracy\n" + clients(facts.samples) +
         "weights = \"samples\"\n\n[algorithm]\nname = \"fedavg\"\nlocal_steps = 5\n"
         "local_step_size = \"theory*5\"   # from estimated constants; a smaller multiple if the run "
         "diverges\n\n[run]\nrounds = 300\nevaluate_every = 5\n";
}

std::string text_experiment(const std::string& source) {
  return "precision = \"fp32\"\n\n[problem]\nkind = \"char_mlp\"       # predicts the next letter\ndata = " +
         toml_literal(source) +
         "\ntest_share = 0.1        # held out, to measure accuracy\ncontext = 16            # letters "
         "before the predicted one\nwidth = 16\nhidden = [64]\n\n[clients]\ncount = 10\npartition = "
         "\"iid\"\n\n[algorithm]\nname = \"fedavg\"\nbatch = 32\nlocal_steps = 100\nlocal_step_size = 0.3\n"
         "\n[run]\nrounds = 50\nevaluate_every = 10\n\n[evaluation]\ngrad_norm = \"none\"    # gradients of "
         "the whole text take long\n";
}

// One of the user's keys.
struct OwnKey {
  std::string section, key;
  Value value;
};

OwnKey own_key(const std::string& set) {
  OwnKey own;
  const std::string path = key_of_override(set),
                    spelled = set.substr(std::min(set.find('='), set.size() - 1) + 1);
  const std::size_t dot = path.find('.');
  if (dot != path.npos) own.section = path.substr(0, dot);
  own.key = dot == path.npos ? path : path.substr(dot + 1);
  own.value = read_toml_value(spelled).value_or(spelled);
  const KnownKey* const known = find_key(own.section, own.key);
  if (known != nullptr && known->takes_any_text && !std::holds_alternative<std::string>(own.value))
    own.value = spelled;
  return own;
}

// Puts a key into the text of an experiment: in place of its line, or at the end of its section.
void put(std::string& text, const OwnKey& own) {
  const std::string header = "[" + own.section + "]";
  const std::size_t section = own.section.empty() ? 0 : ("\n" + text).find("\n" + header + "\n");
  if (section == text.npos) {
    text += "\n" + header + "\n";
    return put(text, own);
  }
  std::size_t end = std::min(text.find("\n[", section + 1), text.size());
  const std::string line = own.key + " = " + toml_literal(own.value) + "\n";
  if (const std::size_t found = text.find("\n" + own.key + " = ", section); found < end) {
    text.replace(found + 1, text.find('\n', found + 1) - found, line);
    return;
  }
  // A new key comes before the blank lines at the end of the section.
  while (end > section && text[end - 1] == '\n') --end;
  text.insert(std::min(end + 1, text.size()), line);
}

// Removes the parameters of the algorithm that the text names, for another one.
void remove_parameters(std::string& text) {
  const std::size_t start = text.find("\n[algorithm]\n") + 1;
  text.replace(start, std::min(text.find("\n[", start), text.size()) - start, "[algorithm]\n");
}

std::string experiment_for(const std::string& source, const fs::path& file,
                           const std::vector<std::string>& sets, std::vector<LogLine>& notes) {
  const std::string name = file.stem().string(), title = "name = " + toml_literal(name) + "\n";
  if (full_source(source).starts_with("text:"))
    return head(name, source, "text", "fedavg,scaffold") + title + text_experiment(source);
  std::vector<std::string> reading;
  std::string kind;
  for (const std::string& set : sets) {
    const std::string key = key_of_override(set);
    if (key == "problem.kind") kind = set.substr(set.find('=') + 1);
    for (const char* const known : {"label", "columns", "missing", "dim", "samples", "classes", "noise"})
      if (key == std::string("problem.") + known) reading.push_back(set);
  }
  const DataFacts facts = look_at(source, file, reading);
  if (!facts.label.empty())
    notes.emplace_back("label: " + facts.label + ": " + facts.labels_text() +
                       "; columns: " + some_of(facts.columns, kNamed) + "; --label COLUMN takes another");
  if (!facts.numbering.empty())
    notes.push_back(LogLine::warning("left out: " + some_of(facts.numbering, kNamed) + kNumbering +
                                     "; --columns takes others"));
  if (facts.left_out > 0)
    notes.push_back(LogLine::warning("missing: " + of_lines(facts) +
                                     " lack a value and are left out; --missing mean keeps them"));
  if (facts.labels.size() < 2)
    throw DataError(source + ": has one label only, so there is nothing to learn; name data with more" +
                    (facts.label.empty() ? "" : ", or another label than " + facts.label + " with --label"));
  const bool is_softmax = kind.empty() ? facts.has_classes() && facts.labels.size() > 2 : kind == "mlp";
  std::string size = number_of(facts.samples, "sample") + ", " + number_of(facts.features, "feature") + ", ";
  size += facts.has_classes()
              ? number_of(facts.labels.size(), "label") + " from " + number_text(facts.labels.front()) +
                    " to " + number_text(facts.labels.back())
              : "real labels";
  return head(name, source, size, is_softmax ? "fedavg,scaffold" : "gd,diana,ef21") + title +
         (is_softmax ? softmax_experiment(source, facts) : linear_experiment(source, facts));
}

// Writes a file that does not exist yet.
void write_new_file(const fs::path& file, const std::string& text) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EEXIST)
    throw UsageError(file.string() + ": exists already; choose another name, or move this file away");
  if (fd < 0) throw UsageError(file.string() + ": cannot be written: " + std::strerror(errno));
  std::string_view rest = text;
  while (!rest.empty()) {
    const ::ssize_t written = ::write(fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  const int error = errno;
  if (::close(fd) == 0 && rest.empty()) return;
  ::unlink(file.c_str());
  throw std::runtime_error(file.string() + ": cannot be written: " + std::strerror(error));
}

}  // namespace

NewExperiment write_new_experiment(const std::string& name, const std::string& data,
                                   const std::vector<std::string>& sets) {
  NewExperiment made;
  made.file = name.ends_with(".toml") ? fs::path(name) : fs::path(name + ".toml");
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(made.file, ignored)))
    throw UsageError(made.file.string() + ": exists already; choose another name, or move this file away");
  const fs::path folder = made.file.has_parent_path() ? made.file.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, ignored))
    throw UsageError(made.file.string() + ": cannot be written: " + folder.string() +
                     " is not a folder; make it first");
  std::string text = experiment_for(source_of(data, folder), made.file, sets, made.notes);
  for (const std::string& set : sets)
    if (key_of_override(set) == "algorithm.name") remove_parameters(text);
  parse_experiment(text, made.file, sets);  // throws an error that names the user's option
  for (const std::string& set : sets) put(text, own_key(set));
  // Throws if the experiment would not run.
  prepare(parse_experiment(text, made.file));
  write_new_file(made.file, text);
  return made;
}

}  // namespace gradwire
