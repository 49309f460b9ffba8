#include "experiments/cli/run/new_experiment.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <string_view>
#include <unistd.h>

#include "base/value.h"
#include "config/experiment_file.h"
#include "engine/data/readers/source.h"
#include "engine/problems/problem.h"
#include "report/results_dir.h"
#include "samples/local_problem.h"
#include "simulation/prepare.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostClasses = 50, kSamplesPerClass = 10;  // more labels, or rarer ones, are numbers
constexpr std::size_t kMostClients = 10, kSamplesPerClient = 20;

// Returns the scheme of a file by its name, or else by its first line: LIBSVM has "1:0.5" after the label.
std::string scheme_of(const fs::path& file) {
  std::error_code error;
  if (fs::is_directory(file, error)) return "idx:";
  const std::string name = file.filename().string();
  for (const std::string_view ending : {".csv", ".tsv"})
    if (name.find(ending) != name.npos) return "csv:";
  if (name.ends_with(".npz")) return "npz:";
  for (const std::string_view ending : {".gz", ".bz2", ".xz"})
    if (name.ends_with(ending)) return "libsvm:";
  std::ifstream in(file, std::ios::binary);
  std::array<char, 4096> block{};
  in.read(block.data(), block.size());
  std::string_view line(block.data(), static_cast<std::size_t>(in.gcount()));
  line = line.substr(0, line.find('\n'));
  const std::size_t colon = line.find(':');
  const auto is_digit = [&](std::size_t at) {
    return at < line.size() && line[at] >= '0' && line[at] <= '9';
  };
  if (colon != std::string_view::npos && colon > 1 && is_digit(colon - 1) && line.find(' ') < colon)
    return "libsvm:";
  return line.find_first_of(",;\t") != std::string_view::npos ? "csv:" : "text:";
}

// Returns the source as problem.data has it in a file in `folder`.
std::string source_of(const std::string& data, const fs::path& folder) {
  std::error_code error;
  const bool is_public = full_source(data) != data && !fs::exists(data, error);
  if (is_public || data == "digits" || data == "synthetic" || data.starts_with("npy:")) return data;
  std::string scheme;
  for (const std::string_view known : {"libsvm:", "csv:", "npz:", "idx:", "text:"})
    if (data.starts_with(known)) scheme = known;
  const fs::path typed = data.substr(scheme.size());
  const fs::path file = find_data(typed, ".");
  if (scheme.empty()) scheme = scheme_of(file);
  const bool is_here = typed.is_relative() && fs::exists(typed, error);
  const fs::path named = is_here ? fs::relative(fs::absolute(typed), fs::absolute(folder), error) : typed;
  return scheme + (error || named.empty() ? fs::absolute(typed) : named).generic_string();
}

// The facts about the data that decide the experiment.
struct Facts {
  std::size_t samples = 0, features = 0;
  std::vector<double> labels;  // distinct
  bool has_classes() const {
    return labels.size() <= kMostClasses && samples >= kSamplesPerClass * labels.size() &&
           std::all_of(labels.begin(), labels.end(), [](double l) { return l == std::floor(l); });
  }
};

// Reads all samples as one client of softmax regression, which accepts any labels.
Facts look_at(const std::string& source, const fs::path& file) {
  const LoadedExperiment loaded =
      parse_experiment("[problem]\nkind = \"mlp\"\nhidden = []\ndata = " + toml_literal(source) +
                           "\n[clients]\ncount = 1\n[algorithm]\nname = \"gd\"\nstep_size = 1\n",
                       file);
  const SharedSamples samples = load_samples(loaded.experiment, loaded.folder());
  const DataSchema schema = schema_of(samples, problem_spec(loaded.experiment));
  return {samples.train.rows(), schema.columns, schema.labels};
}

std::string number_of(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string head(const std::string& name, const std::string& source, const std::string& facts,
                 const std::string& others) {
  const std::string file = name + ".toml";
  return "# Written by gradwire new from " + source + ": " + facts + ".\n#   gradwire run " + file +
         "\n#   gradwire compare " + file + " --algorithms " + others +
         " --tune\n# `gradwire list keys` shows all keys, `gradwire list algorithms` all algorithms.\n";
}

std::string clients(std::size_t samples) {
  const std::size_t count = std::clamp<std::size_t>(samples / kSamplesPerClient, 1, kMostClients);
  return "\n[clients]\ncount = " + std::to_string(count) +
         "\npartition = \"iid\"       # shuffled; \"dirichlet\" gives clients different shares of the "
         "labels\n";
}

std::string linear_experiment(const std::string& source, const Facts& facts) {
  const bool classes = facts.has_classes();
  const bool is_table = source.starts_with("csv:") || source.starts_with("np");
  return std::string("\n[problem]\nkind = ") +
         (classes ? "\"logistic\"       # for two labels\n" : "\"least_squares\"  # for real labels\n") +
         "data = " + toml_literal(source) +
         (is_table ? "\nnormalize = \"standard\"  # features of mean 0 and deviation 1, so steps may be large"
                   : "") +
         "\nregularizer = \"l2\"      # f is strongly convex, so f* exists\nlambda = 0.001\nbias = true\n" +
         (classes ? "test_share = 0.2        # held out, to measure accuracy\n" : "") +
         clients(facts.samples) +
         "\n[algorithm]\nname = \"diana\"\ncompressor = \"randk:k=10%\"   # each client sends a tenth of its "
         "numbers\nstep_size = \"theory\"    # of DIANA's theorem; \"theory*4\" is four times that\n"
         "\n[run]\nrounds = 1000\nevaluate_every = 10\n";
}

std::string softmax_experiment(const std::string& source, const Facts& facts) {
  return "precision = \"fp32\"\n\n[problem]\nkind = \"mlp\"            # a network; hidden = [] is softmax "
         "regression\ndata = " +
         toml_literal(source) + "\nhidden = [32]\ntest_share = 0.2        # held out, to measure accuracy\n" +
         clients(facts.samples) +
         "weights = \"samples\"\n\n[algorithm]\nname = \"fedavg\"\nlocal_steps = 5\n"
         "local_step_size = \"theory*5\"   # from estimated constants; a smaller multiple if the run "
         "diverges\n\n[run]\nrounds = 300\nevaluate_every = 5\n";
}

std::string text_experiment(const std::string& source) {
  return "precision = \"fp32\"\n\n[problem]\nkind = \"char_mlp\"       # predicts the next letter\ndata = " +
         toml_literal(source) +
         "\ntest_share = 0.1        # held out, to measure accuracy\ncontext = 16            # letters "
         "before "
         "the predicted one\nwidth = 16\nhidden = [64]\n\n[clients]\ncount = 10\npartition = \"iid\"\n"
         "\n[algorithm]\nname = \"fedavg\"\nbatch = 32\nlocal_steps = 100\nlocal_step_size = 0.3\n"
         "\n[run]\nrounds = 50\nevaluate_every = 10\n\n[evaluation]\ngrad_norm = \"none\"    # gradients of "
         "the whole text take long\n";
}

std::string experiment_for(const std::string& source, const fs::path& file) {
  const std::string name = file.stem().string(), title = "name = " + toml_literal(name) + "\n";
  if (full_source(source).starts_with("text:"))
    return head(name, source, "text", "fedavg,scaffold") + title + text_experiment(source);
  const Facts facts = look_at(source, file);
  const std::string size =
      number_of(facts.samples, "sample") + ", " + number_of(facts.features, "feature") + ", ";
  if (facts.labels.size() < 2)
    throw DataError(source + ": has one label only, so there is nothing to learn; name data with more");
  if (!facts.has_classes())
    return head(name, source, size + "real labels", "gd,diana,ef21") + title +
           linear_experiment(source, facts);
  const std::string labels = number_of(facts.labels.size(), "label") + " from " +
                             number_text(facts.labels.front()) + " to " + number_text(facts.labels.back());
  if (facts.labels.size() == 2)
    return head(name, source, size + labels, "gd,diana,ef21") + title + linear_experiment(source, facts);
  return head(name, source, size + labels, "fedavg,scaffold") + title + softmax_experiment(source, facts);
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

fs::path write_new_experiment(const std::string& name, const std::string& data) {
  const fs::path file = name.ends_with(".toml") ? fs::path(name) : fs::path(name + ".toml");
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(file, ignored)))
    throw UsageError(file.string() + ": exists already; choose another name, or move this file away");
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, ignored))
    throw UsageError(file.string() + ": cannot be written: " + folder.string() +
                     " is not a folder; make it first");
  const std::string text = experiment_for(source_of(data, folder), file);
  prepare(parse_experiment(text, file));  // throws if the experiment would not run
  write_new_file(file, text);
  return file;
}

}  // namespace gradwire
