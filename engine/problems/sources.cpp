#include "engine/problems/sources.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/config_error.h"
#include "base/suggest.h"
#include "base/text_lines.h"
#include "base/value.h"
#include "base/word_list.h"
#include "engine/data/dataset.h"

namespace gradwire {
namespace {

bool is_text(const std::string& source) { return full_source(source).starts_with("text:"); }

// Returns the key of a path: "data" for "problem.data".
std::string key_of(const std::string& path) { return path.substr(path.rfind('.') + 1); }

void check_source(const std::string& path, const std::string& source) {
  if (source.empty() || source == "digits" || source == "synthetic" || source == kGivenSource ||
      source != full_source(source))
    return;
  const std::size_t colon = source.find(':');
  const std::string scheme = source.substr(0, colon);
  if (scheme == "npy" && source.find(',') == std::string::npos)
    throw ConfigError(path, key_of(path) + " 'npy' needs two paths, as in npy:X.npy,y.npy");
  constexpr auto kSchemes = std::to_array<std::string_view>({"libsvm", "csv", "npy", "npz", "idx", "text"});
  if (std::ranges::find(kSchemes, scheme) != kSchemes.end()) {
    if (colon != std::string::npos && colon + 1 < source.size()) return;
    throw ConfigError(path, key_of(path) + " '" + scheme + "' needs a path, as in " + scheme + ":PATH");
  }
  if (colon == std::string::npos && source.find_first_of("./") != std::string::npos)
    throw ConfigError(path, key_of(path) + " " + describe(source) +
                                ": write the kind of the file before it, as in libsvm:" + source +
                                " or csv:" + source);
  throw ConfigError(path, "unknown data source " + describe(source) +
                              suggest(scheme, {"digits", "libsvm", "csv", "npy", "npz", "idx", "text",
                                               "synthetic", "mnist", "shakespeare"}));
}

std::vector<std::string> pieces_of(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.emplace_back(trim(text.substr(0, end)));
    if (end == text.npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

bool are_different(std::vector<std::string> texts) {
  std::ranges::sort(texts);
  return !texts.front().empty() && std::ranges::adjacent_find(texts) == texts.end();
}

}  // namespace

bool TextCodec<LabelTexts>::read(std::string_view text, LabelTexts& out) {
  std::vector<std::string> texts;
  if (!text.empty()) texts = pieces_of(text, ',');
  if (!texts.empty() && (texts.size() < 2 || !are_different(texts))) return false;
  out.texts = std::move(texts);
  return true;
}

std::string TextCodec<LabelTexts>::write(const LabelTexts& labels) { return joined(labels.texts); }

bool TextCodec<CategoryTexts>::read(std::string_view text, CategoryTexts& out) {
  std::vector<ColumnTexts> columns;
  std::vector<std::string> names;
  for (const std::string& piece : text.empty() ? std::vector<std::string>() : pieces_of(text, ';')) {
    const std::size_t colon = piece.rfind(':');
    if (colon == piece.npos) return false;
    columns.push_back({std::string(trim(std::string_view(piece).substr(0, colon))),
                       pieces_of(std::string_view(piece).substr(colon + 1), '|')});
    names.push_back(columns.back().column);
    if (columns.back().texts.size() < 2 || !are_different(columns.back().texts)) return false;
  }
  if (!names.empty() && !are_different(names)) return false;
  out.columns = std::move(columns);
  return true;
}

std::string TextCodec<CategoryTexts>::write(const CategoryTexts& categories) {
  std::vector<std::string> columns;
  for (const auto& [column, texts] : categories.columns)
    columns.push_back(column + ": " + joined(texts, "|"));
  return joined(columns, "; ");
}

std::string full_source(const std::string& source) {
  if (source == "mnist") return "idx:mnist";
  if (source == "shakespeare") return "text:tinyshakespeare.txt";
  for (const char* name : {"a1a", "a9a", "australian", "ijcnn1", "mushrooms", "phishing", "w8a"})
    if (source == name) return "libsvm:" + source;
  if (source.find(':') < source.find('/')) return source;
  std::string_view path = source;
  for (const std::string_view packed : {".gz", ".bz2", ".xz"})
    if (source.ends_with(packed)) path = path.substr(0, source.size() - packed.size());
  for (const char* ending : {".csv", ".tsv"})
    if (path.ends_with(ending)) return "csv:" + source;
  for (const char* ending : {".svm", ".libsvm", ".svmlight"})
    if (path.ends_with(ending)) return "libsvm:" + source;
  if (path.ends_with(".npz")) return "npz:" + source;
  if (path.ends_with(".npy") && path.find(',') != std::string_view::npos) return "npy:" + source;
  return source;
}

void check_rows_source(std::string_view kind, const std::string& path, const std::string& source) {
  check_source(path, source);
  if (is_text(source))
    throw ConfigError(path, "kind '" + std::string(kind) + "' needs labelled samples, but '" + source +
                                "' is text; `gradwire list problems` shows which kinds read text");
}

void check_text_source(std::string_view kind, const std::string& path, const std::string& source) {
  check_source(path, source);
  if (!source.empty() && !is_text(source))
    throw ConfigError(path,
                      "kind '" + std::string(kind) + "' reads text: write text:PATH, not '" + source + "'");
}

void SampleSource::check() const {
  if (!test.empty() && test_share > 0)
    throw ConfigError("problem.test_share", "test_share and test exclude each other; set one of them");
}

void RowsData::check() const {
  SampleSource::check();
  if (classes == 1)
    throw ConfigError("problem.classes", "classes must be 0 (real labels) or 2 or more, not 1");
}

std::size_t RowsData::features(const DataSchema& schema) const {
  if (dim > 0 && dim < schema.columns) {
    throw DataError("problem.dim = " + std::to_string(dim) + " but the data has " +
                    std::to_string(schema.columns) + " features; raise problem.dim or omit it");
  }
  const std::size_t count = dim > 0 ? dim : schema.columns;
  if (count == 0) throw DataError("the data has no features; set problem.dim if all of them are 0");
  return count;
}

std::string count_and_list(const std::vector<double>& labels) {
  constexpr std::size_t kShown = 5;
  std::string text = std::to_string(labels.size()) + ": ";
  for (std::size_t i = 0; i < std::min(labels.size(), kShown); ++i) {
    char number[32];
    std::snprintf(number, sizeof number, "%s%g", i == 0 ? "" : ", ", labels[i]);
    text += number;
  }
  return labels.size() > kShown ? text + ", ..." : text;
}

std::string labels_found(const DataSchema& schema) {
  return (schema.label_texts.size() == schema.labels.size()
              ? std::to_string(schema.labels.size()) + ": " + joined(schema.label_texts)
              : count_and_list(schema.labels)) +
         (schema.label_place.empty() ? "" : ", in " + schema.label_place);
}

std::string other_label(const DataSchema& schema) {
  return schema.label_place.empty() ? "" : "; problem.label names another column";
}

}  // namespace gradwire
