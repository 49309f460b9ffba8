#include "samples/local_problem.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "base/value.h"
#include "config/experiment_spec.h"
#include "engine/data/readers/lines.h"
#include "engine/data/readers/synthetic.h"

namespace gradwire {
namespace {

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Returns whether a source opens no file, so that an experiment may name it for a client.
bool opens_no_file(const std::string& source) { return source == "digits" || source == "synthetic"; }

// Reads `source` and `test` twice: first the labels, which decide the client of each row, then the rows of
// `mine`.
SharedSamples share_own(
    const std::function<Dataset(const std::string& source, SampleUse use, const KeepRow& keep)>& read,
    const std::string& source, const std::string& test, const SplitSpec& spec, ClientRange mine) {
  using enum SampleUse;
  constexpr auto none = [](std::size_t) { return false; };
  const auto listed = [](const std::vector<bool>& rows) {
    return [&rows](std::size_t row) { return row < rows.size() && rows[row]; };
  };
  const Dataset labels = read(source, kTraining, none);
  if (test.empty()) {
    const RowsOfClients rows = rows_of_clients(labels, nullptr, spec, mine.first, mine.end);
    return share_samples(read(source, kTraining, listed(rows.data)), nullptr, spec);
  }
  const Dataset test_labels = read(test, kTest, none);
  const RowsOfClients rows = rows_of_clients(labels, &test_labels, spec, mine.first, mine.end);
  const Dataset test_data = read(test, kTest, listed(rows.test));
  return share_samples(read(source, kTraining, listed(rows.data)), &test_data, spec);
}

// Splits the samples, and does not normalise them. `test` may be empty. If `encoding` is null, it comes from
// the training data; the test data have the same. REQUIRES: the problem has data.
SharedSamples split(const ExperimentSpec& e, const std::string& source, const std::string& test,
                    const SplitSpec& spec, const std::filesystem::path& base,
                    std::optional<ClientRange> mine = std::nullopt, const Reading& reading = {},
                    std::shared_ptr<const TableEncoding> encoding = nullptr) {
  const auto shared = [&](const auto& read) {
    auto data = read(source, SampleUse::kTraining);
    if (test.empty()) return share_samples(std::move(data), nullptr, spec);
    const auto test_data = read(test, SampleUse::kTest);
    return share_samples(std::move(data), &test_data, spec);
  };
  if (auto text = text_reading(e.problem)) {
    text->by_speaker = spec.partition == PartitionKind::kBySpeaker;
    return shared([&](const std::string& from, SampleUse) { return reading.text(from, base, *text); });
  }
  const RowsData& rows = *rows_of(e.problem);
  if (const SyntheticSpec drawn = synthetic_spec(rows, e.seed);
      source == "synthetic" && is_too_large_to_store(drawn)) {
    if (!test.empty())
      throw DataError("problem.test cannot be used with synthetic data of more than " +
                      std::to_string(kMaxSyntheticValues) + " values, which are not stored; leave it out");
    if (rows.normalize != Normalize::kNone)
      throw DataError("problem.normalize cannot be used with synthetic data of more than " +
                      std::to_string(kMaxSyntheticValues) + " values, which are not stored; leave it out");
    return draw_synthetic(drawn, spec);
  }
  const auto read = [&](const std::string& from, SampleUse use, const KeepRow& keep = {}) {
    Dataset data = reading.rows(from, base, synthetic_spec(rows, e.seed), rows.dim, keep, use,
                                {rows.table(), encoding.get()});
    if (use == SampleUse::kTraining && encoding == nullptr) encoding = data.encoding;
    if (encoding != nullptr && !encoding->label.texts.empty() && !info_of(e.problem).has_classes)
      throw DataError(
          "kind = \"" + std::string(info_of(e.problem).name) +
          "\" needs numbers as labels, but the label has texts: it is " + encoding->label_place +
          "; use kind = \"logistic\" for two texts or \"mlp\" for more, or name another column in "
          "problem.label");
    return data;
  };
  return mine ? share_own(read, source, test, spec, *mine) : shared(read);
}

// Returns the error about a table whose texts the experiment does not name.
std::string texts_of_one(const TableEncoding& encoding) {
  std::string columns, categories, keys;
  for (std::size_t k = 0; k < encoding.features.size(); ++k) {
    const auto& [name, texts, mean, is_given] = encoding.features[k];
    if (texts.empty() || is_given) continue;
    const std::string column = name.empty() ? std::to_string(k + 1) : name;
    columns += (columns.empty() ? "" : ", ") + gradwire::quoted(column);
    categories += (categories.empty() ? "" : "; ") + column + ":";
    for (const std::string& text : texts) categories += (text == texts[0] ? " " : "|") + text;
  }
  const auto& label = encoding.label;
  const bool has_label = !label.texts.empty() && !label.is_given;
  if (has_label) {
    columns += (columns.empty() ? "the label" : " and the label") +
               (label.name.empty() ? "" : " " + gradwire::quoted(label.name));
    for (const std::string& text : label.texts) keys += (keys.empty() ? "" : ", ") + text;
    keys = "labels = " + toml_literal(keys);
  }
  if (!categories.empty())
    keys += (keys.empty() ? "" : " and ") + ("categories = " + toml_literal(categories));
  return "has text in " + columns +
         ", which each client would number by its own file; name the texts of all clients under [problem] of "
         "the server's experiment, as in " +
         keys + ", write numbers";
}

// Normalises the samples. `map` is that of a model; if null, it comes from the samples.
void normalize_all(SharedSamples& samples, Normalize kind, std::shared_ptr<const Normalization> map) {
  if (kind == Normalize::kNone) return;
  samples.normalization = std::move(map);
  if (samples.normalization == nullptr) {
    samples.normalization =
        std::make_shared<const Normalization>(normalization_of(samples.train, samples.train_shares, kind));
    if (std::string warning = sparse_warning(*samples.normalization); !warning.empty())
      samples.warnings.push_back(std::move(warning));
  }
  normalize(samples.train, *samples.normalization);
  normalize(samples.test, *samples.normalization);
}

// Normalises the samples of a client, unless the map needs the sums of all clients: the session applies that.
void normalize_own(SharedSamples& samples, const ProblemType& problem) {
  const RowsData* const rows = rows_of(problem);
  if (rows != nullptr && !needs_sums(rows->normalize)) normalize_all(samples, rows->normalize, nullptr);
}

}  // namespace

SplitSpec split_spec(const ExperimentSpec& e) {
  SplitSpec spec;
  spec.partition = e.clients.partition;
  spec.dirichlet_alpha = e.clients.dirichlet_alpha;
  spec.clients = e.clients.count;
  spec.samples_per_client = e.clients.samples_per_client;
  spec.replication = {e.clients.replication, e.clients.placement};
  const SampleSource* const source = sources_of(e.problem);
  spec.test_share = source == nullptr ? 0 : source->test_share;
  spec.seed = e.seed;
  return spec;
}

SyntheticSpec synthetic_spec(const RowsData& rows, std::uint64_t seed) {
  SyntheticSpec spec;
  spec.samples = rows.samples;
  if (rows.dim > 0) spec.dim = rows.dim;
  spec.classes = rows.classes;
  spec.noise = rows.noise;
  spec.seed = seed;
  return spec;
}

DataChoice parse_data_choice(std::string_view text) {
  DataChoice choice;
  const std::size_t hash = text.rfind('#');
  choice.source = text == "none" ? "" : std::string(text.substr(0, hash));
  if (hash == std::string_view::npos) return choice;
  const std::string_view part = text.substr(hash + 1);
  const std::size_t slash = part.find('/');
  const auto index = number(part.substr(0, slash));
  const std::uint32_t count =
      number(slash == std::string_view::npos ? "" : part.substr(slash + 1)).value_or(0);
  const std::string quoted = "--data '" + std::string(text) + "': ";
  if (!index || count == 0) throw DataError(quoted + "after '#' comes the part, i/n, as in #0/20");
  if (*index >= count) {
    throw DataError(quoted + "parts are numbered from 0, so the last of " + std::to_string(count) + " is #" +
                    std::to_string(count - 1) + "/" + std::to_string(count));
  }
  choice.part = {*index, count};
  return choice;
}

std::string complete_source(const std::string& source, const std::string& own) {
  if (source.empty()) return own;
  if (source == "digits" || source == "synthetic") return source;
  if (const std::string full = full_source(source); full != source) return full;
  for (const std::string_view kind : {"libsvm:", "csv:", "npy:", "npz:", "idx:", "text:"})
    if (source.starts_with(kind)) return source;
  const std::size_t colon = own.find(':');
  if (colon == std::string::npos) {
    throw DataError("--data '" + source + "': write its kind before it, as in libsvm:" + source +
                    "; the experiment's data is '" + own + "', which has no files");
  }
  return own.substr(0, colon + 1) + source;
}

SharedSamples load_samples(const ExperimentSpec& e, const std::filesystem::path& base,
                           std::optional<ClientRange> mine, const Reading& reading,
                           const Preprocessing& given) {
  const SampleSource* const own = sources_of(e.problem);
  if (own == nullptr) return {};
  const RowsData* const rows = rows_of(e.problem);
  const Normalize kind = given.normalization != nullptr ? given.normalization->kind
                         : rows != nullptr              ? rows->normalize
                                                        : Normalize::kNone;
  if (given.normalization == nullptr && needs_sums(kind)) mine.reset();
  SharedSamples samples = split(e, own->data, own->test, split_spec(e), base, mine, reading, given.encoding);
  normalize_all(samples, kind, given.normalization);
  return samples;
}

bool leaves_out_test(const ExperimentSpec& e, const DataChoice& choice) {
  const SampleSource* const own = sources_of(e.problem);
  if (own == nullptr || own->test.empty() || !choice.test.empty()) return false;
  return !(choice.part && opens_no_file(own->test));
}

ClientDataset load_part(const ExperimentSpec& e, const DataChoice& choice,
                        const std::filesystem::path& base) {
  const SampleSource* const own = sources_of(e.problem);
  if (own == nullptr) {
    if (choice.source.empty() && choice.test.empty()) return {};
    const std::string option = choice.source.empty() ? "--test '" + choice.test : "--data '" + choice.source;
    throw DataError(option + "': the problem '" + std::string(problem_type_name(e)) +
                    "' has no data; leave it out, or name the part alone, as in --data '#0/" +
                    std::to_string(e.clients.count) + "'");
  }
  const std::string source = complete_source(choice.source, own->data);
  SplitSpec spec = split_spec(e);
  if (!choice.test.empty() && spec.test_share > 0)
    throw DataError(
        "--test '" + choice.test +
        "': the experiment holds out a part of --data for tests (problem.test_share); leave it out");
  std::string test = choice.test.empty() ? "" : complete_source(choice.test, own->data);
  if (choice.part) {
    const std::string part = std::to_string(choice.part->index) + "/" + std::to_string(choice.part->count);
    if (choice.part->count != spec.clients) {
      throw DataError("--data names part " + std::to_string(choice.part->index) + " of " +
                      std::to_string(choice.part->count) + ", but the experiment has " +
                      std::to_string(spec.clients) + " clients");
    }
    if (choice.source.empty() && !opens_no_file(source))
      throw DataError("--data '#" + part + "' names no file, and one that the server names ('" + source +
                      "') is not opened; name it here, as in --data '" + source + "#" + part + "'");
    if (test.empty() && opens_no_file(own->test)) test = own->test;
    SharedSamples samples = split(e, source, test, spec, base);
    normalize_own(samples, e.problem);
    return std::move(samples).take_part(choice.part->index);
  }
  if (choice.source.empty())
    throw DataError(
        "--data is missing: name this client's own data, as in --data FILE, or its part of common " +
        std::string("data, as in --data '") + (opens_no_file(source) ? source : "FILE") + "#0/" +
        std::to_string(spec.clients) + "'");
  if (spec.replication.count > 1)
    throw DataError("--data '" + choice.source +
                    "': with clients.replication = " + std::to_string(spec.replication.count) +
                    " clients hold parts of one file; name this client's, as in --data '" + choice.source +
                    "#0/" + std::to_string(spec.clients) + "'");
  spec.clients = 1;
  spec.samples_per_client = 0;
  spec.partition = PartitionKind::kContiguous;
  const std::string part_of_one = "let all clients hold parts of one file, as in --data '" + choice.source +
                                  "#0/" + std::to_string(e.clients.count) + "'";
  SharedSamples samples = split(e, source, test, spec, base);
  const TableEncoding* const encoding = samples.train.encoding.get();
  if (encoding != nullptr && encoding->has_own_texts())
    throw DataError("--data '" + choice.source + "': " + texts_of_one(*encoding) + ", or " + part_of_one);
  normalize_own(samples, e.problem);
  return std::move(samples).take_part(0);
}

ClientData client_data(DataChoice choice) {
  ClientData data;
  data.part = choice.part;
  data.load = [choice = std::move(choice), said = false](const ExperimentSpec& e, const Log& log) mutable {
    ClientDataset part = load_part(e, choice, std::filesystem::current_path());
    if (std::exchange(said, true)) return part;
    for (const std::string& warning : part.warnings) log(LogLine::warning(warning));
    if (part.test_count() > 0 && !info_of(e.problem).has_classes && rows_of(e.problem) != nullptr)
      log(LogLine::warning(
          "the test data are not used: a run measures accuracy, which numbers as labels lack"));
    if (leaves_out_test(e, choice))
      log(LogLine::warning(
          "accuracy is not measured here: a file of test data is opened only when --test names it "
          "(the experiment's is '" +
          sources_of(e.problem)->test + "')"));
    return part;
  };
  return data;
}

}  // namespace gradwire
