#include "experiments/cli/run/data_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/value.h"
#include "base/word_list.h"
#include "config/experiment_file.h"
#include "engine/data/readers/libsvm.h"
#include "engine/data/readers/source.h"
#include "engine/problems/problem.h"
#include "samples/local_problem.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostClasses = 50, kSamplesPerClass = 10;  // more labels, or rarer ones, are numbers
constexpr std::size_t kFewLines = 10;                            // too few to see that a column numbers them
constexpr std::size_t kNamedLabels = 10;

// Returns the scheme of a file by its name, or else by its first line.
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
  if (line.find(':') != line.npos && looks_like_libsvm(line)) return "libsvm:";
  return line.find_first_of(",;\t") != std::string_view::npos ? "csv:" : "text:";
}

double value_at(const Dataset& data, std::size_t row, std::uint32_t column) {
  const auto columns = data.row_columns(row);
  const auto at = std::ranges::lower_bound(columns, column);
  return at == columns.end() || *at != column
             ? 0
             : data.row_values(row)[static_cast<std::size_t>(at - columns.begin())];
}

// Returns the features, as indices into the encoding, that number the lines in any order, or have another
// text in each line.
std::vector<std::size_t> numbering_features(const Dataset& data, std::size_t lines) {
  if (data.rows() < kFewLines) return {};
  struct Candidate {
    std::size_t feature;
    std::uint32_t column;
    std::vector<bool> seen;
  };
  std::vector<Candidate> candidates;
  std::vector<std::size_t> found;
  std::uint32_t column = 0;
  for (std::size_t k = 0; k < data.encoding->features.size(); ++k) {
    const TableEncoding::Column& of = data.encoding->features[k];
    if (of.texts.empty()) candidates.push_back({k, column, std::vector<bool>(lines + 1)});
    if (of.texts.size() == data.rows()) found.push_back(k);
    column += static_cast<std::uint32_t>(of.width());
  }
  for (std::size_t row = 0; row < data.rows() && !candidates.empty(); ++row)
    std::erase_if(candidates, [&](Candidate& c) {
      const double value = value_at(data, row, c.column);
      if (value != std::floor(value) || value < 0 || value > static_cast<double>(lines)) return true;
      const auto number = static_cast<std::size_t>(value);
      if (c.seen[number]) return true;
      c.seen[number] = true;
      return false;
    });
  for (const Candidate& c : candidates) found.push_back(c.feature);
  std::ranges::sort(found);
  return found;
}

// Returns the columns as problem.columns has them, as in "2-5, 7". If a number is also a name, "7-7".
std::string ranges_of(const std::vector<std::size_t>& columns, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t k = 0; k < columns.size();) {
    std::size_t end = k + 1;
    while (end < columns.size() && columns[end] == columns[end - 1] + 1) ++end;
    const std::string first = std::to_string(columns[k] + 1), last = std::to_string(columns[end - 1] + 1);
    const bool is_alone = first == last && std::ranges::find(names, first) == names.end();
    text += (k == 0 ? "" : ", ") + first + (is_alone ? "" : "-" + last);
    k = end;
  }
  return text;
}

void describe_table(DataFacts& facts, const TableColumns& table, const Dataset& data, bool may_leave_out) {
  for (std::size_t i = 0; i < table.names.size(); ++i)
    facts.columns.push_back(table.names[i].empty() ? "column " + std::to_string(i + 1) : table.names[i]);
  const std::string& name = table.names[table.label];
  const auto first = std::ranges::find(table.names, name) - table.names.begin();
  const bool is_clear = !name.empty() && static_cast<std::size_t>(first) == table.label;
  facts.label = is_clear ? name : std::to_string(table.label + 1);
  facts.left_out = table.samples - data.rows();
  if (!may_leave_out) return;
  const std::vector<std::size_t> numbering = numbering_features(data, table.samples);
  if (numbering.size() == table.features.size()) return;
  std::vector<std::size_t> kept = table.features;
  for (const std::size_t k : numbering) {
    facts.numbering.push_back(facts.columns[table.features[k]]);
    facts.features -= data.encoding->features[k].width();
    std::erase(kept, table.features[k]);
  }
  if (!numbering.empty()) facts.kept = ranges_of(kept, table.names);
}

}  // namespace

bool DataFacts::has_classes() const {
  if (!label_texts.empty()) return true;
  return labels.size() <= kMostClasses && samples >= kSamplesPerClass * labels.size() &&
         std::all_of(labels.begin(), labels.end(), [](double l) { return l == std::floor(l); });
}

std::string DataFacts::labels_text() const {
  if (!has_classes())
    return "numbers from " + rounded_text(labels.front(), 6) + " to " + rounded_text(labels.back(), 6);
  std::vector<std::string> texts = label_texts;
  if (texts.empty())
    for (const double value : labels) texts.push_back(number_text(value));
  return some_of(texts, kNamedLabels) + "; " + std::to_string(labels.size()) + " classes";
}

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

DataFacts look_at(const std::string& source, const fs::path& file, const std::vector<std::string>& sets) {
  const auto is_set = [&](std::string_view key) {
    return std::ranges::any_of(sets, [&](const std::string& set) { return key_of_override(set) == key; });
  };
  std::vector<std::string> overrides = sets;
  if (!is_set("problem.missing")) overrides.emplace_back("problem.missing=drop");
  // Softmax regression accepts any labels.
  const LoadedExperiment loaded =
      parse_experiment("[problem]\nkind = \"mlp\"\nhidden = []\ndata = " + toml_literal(source) +
                           "\n[clients]\ncount = 1\n[algorithm]\nname = \"gd\"\nstep_size = 1\n",
                       file, overrides);
  const ExperimentSpec& e = loaded.experiment;
  const SharedSamples samples = load_samples(e, loaded.folder());
  const DataSchema schema = schema_of(samples, problem_spec(e));
  DataFacts facts;
  facts.samples = samples.train.rows();
  facts.features = schema.columns;
  facts.labels = schema.labels;
  if (samples.train.encoding == nullptr) return facts;
  facts.label_texts = samples.train.encoding->label.texts;
  if (const auto table =
          table_columns(sources_of(e.problem)->data, loaded.folder(), rows_of(e.problem)->table()))
    describe_table(facts, *table, samples.train, !is_set("problem.columns"));
  return facts;
}

}  // namespace gradwire
