#include "engine/data/readers/source.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/text_lines.h"
#include "engine/data/readers/bytes.h"
#include "engine/data/readers/dialogue.h"
#include "engine/data/readers/digits.h"
#include "engine/data/readers/idx.h"
#include "engine/data/readers/libsvm.h"
#include "engine/data/readers/lines.h"
#include "engine/data/readers/npy.h"
#include "engine/data/readers/synthetic.h"

namespace gradwire {
namespace {

constexpr const char* kDataFolders = "GRADWIRE_DATA";

// Returns the last component; "a/b/" names the folder b.
std::filesystem::path last_component(const std::filesystem::path& path) {
  return path.has_filename() ? path.filename() : path.parent_path().filename();
}

// Returns the text after "KIND:" in `source`, or nullopt if the source is of another kind.
std::optional<std::filesystem::path> path_of(std::string_view source, std::string_view kind) {
  if (!source.starts_with(kind)) return std::nullopt;
  source.remove_prefix(kind.size());
  if (source.empty())
    throw DataError("data source '" + std::string(kind) + "': a path must follow the colon");
  return std::filesystem::path(source);
}

// Returns whether a file is read again and again, so that its text is never in memory. A pipe can be read
// only once. Unpacking twice takes time, which only boards spend to save memory.
bool is_read_again(const std::filesystem::path& path) {
#ifdef GRADWIRE_SMALL
  return std::filesystem::is_regular_file(path);
#else
  const std::filesystem::path kind = path.extension();
  return std::filesystem::is_regular_file(path) && kind != ".gz" && kind != ".bz2" && kind != ".xz";
#endif
}

// Sets the number of columns to `dim` > 0. This may add columns of zeros but not remove any.
Dataset widen(Dataset data, std::string_view source, std::size_t dim) {
  if (dim > 0 && data.columns > dim) {
    throw DataError(std::string(source) + ": has " + std::to_string(data.columns) +
                    " features, more than the given dim " + std::to_string(dim) + "; raise dim");
  }
  if (dim > 0) data.columns = dim;
  return data;
}

// Removes the features of rows that are not kept.
Dataset without_others(Dataset data, const KeepRow& keep) {
  if (!keep) return data;
  Dataset kept;
  kept.columns = data.columns;
  kept.warnings = std::move(data.warnings);
  for (std::size_t r = 0; r < data.rows(); ++r) {
    if (keep(r)) {
      const auto column = data.row_columns(r);
      const auto value = data.row_values(r);
      kept.column.insert(kept.column.end(), column.begin(), column.end());
      kept.value.insert(kept.value.end(), value.begin(), value.end());
    }
    kept.row_start.push_back(kept.column.size());
  }
  kept.label = std::move(data.label);
  return kept;
}

}  // namespace

std::filesystem::path data_cache() {
  const auto folder_of = [](const char* variable) {
    const char* const folder = std::getenv(variable);
    return std::filesystem::path(folder != nullptr ? folder : "");
  };
  if (const auto own = folder_of("GRADWIRE_CACHE"); !own.empty()) return own / "data";
  if (const auto caches = folder_of("XDG_CACHE_HOME"); !caches.empty()) return caches / "gradwire" / "data";
  if (const auto home = folder_of("HOME"); !home.empty()) return home / ".cache" / "gradwire" / "data";
  return {};
}

std::filesystem::path find_data(const std::filesystem::path& path, const std::filesystem::path& base) {
  if (path.empty()) throw DataError("the path of the data is empty; name a file");
  std::vector<std::filesystem::path> candidates = {base / path};
  const char* folders = std::getenv(kDataFolders);
  std::string_view rest = folders != nullptr ? folders : "";
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::filesystem::path folder(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    if (folder.empty()) continue;
    if (path.is_relative()) candidates.push_back(folder / path);
    candidates.push_back(folder / last_component(path));
    if (candidates.back() == candidates[candidates.size() - 2]) candidates.pop_back();
  }
  if (const auto cache = data_cache(); !cache.empty() && path.is_relative())
    candidates.push_back(cache / path);
  std::string looked;
  for (const std::filesystem::path& candidate : candidates) {
    std::error_code ignored;
    if (std::filesystem::exists(candidate, ignored)) return candidate;
    looked += (looked.empty() ? "" : ", ") + candidate.string();
  }
  throw DataError("data '" + path.string() + "' not found; looked at " + looked + "; " +
                  (folders != nullptr ? "correct the path or $" : "correct the path, or name a folder in $") +
                  kDataFolders + "; public data: `gradwire data list`, `gradwire data fetch NAME`");
}

Dataset read_source(std::string_view source, const std::filesystem::path& base,
                    const SyntheticSpec& synthetic, std::size_t dim, const KeepRow& keep, SampleUse use,
                    const TableReading& table) {
  if (source == "digits") return widen(without_others(read_digits(), keep), source, dim);
  if (source == "synthetic") return widen(make_synthetic(synthetic, keep), source, dim);
  if (const auto path = path_of(source, "libsvm:")) {
    const std::filesystem::path found = find_data(*path, base);
    const std::string name = found.string();
    if (keep) return parse_libsvm(*stream_text_file(found), name, dim, keep);
    return is_read_again(found) ? parse_libsvm([&] { return stream_text_file(found); }, name, dim)
                                : parse_libsvm(read_text_file(found), name, dim);
  }
  if (const auto path = path_of(source, "csv:")) {
    const std::filesystem::path found = find_data(*path, base);
    const std::string name = found.string();
    const auto open = [&] { return stream_text_file(found); };
    return widen(keep || is_read_again(found)
                     ? parse_csv(open, name, keep, table.options, table.encoding)
                     : parse_csv(read_text_file(found), name, table.options, table.encoding),
                 name, dim);
  }
  if (const auto path = path_of(source, "idx:")) {
    const std::filesystem::path found = find_data(*path, base);
    return widen(read_idx(found, keep, use), found.string(), dim);
  }
  if (const auto path = path_of(source, "npz:")) {
    const std::filesystem::path found = find_data(*path, base);
    return widen(read_npz(found, keep, use), found.string(), dim);
  }
  if (source.starts_with("npy:")) {
    const std::string_view paths = source.substr(4);
    const std::size_t comma = paths.find(',');
    if (comma == std::string_view::npos)
      throw DataError("data source " + quoted(source) +
                      ": two files must follow the colon, as in npy:X.npy,y.npy");
    const std::filesystem::path x = find_data(paths.substr(0, comma), base);
    return widen(read_npy_pair(x, find_data(paths.substr(comma + 1), base), keep), x.string(), dim);
  }
  if (source.starts_with("text:")) {
    throw DataError("data source " + quoted(source) + " is text, but the problem needs labelled samples");
  }
  if (source == kGivenSource)
    throw DataError("data 'given' needs a program that brings the samples (docs/api.md)");
  throw DataError("unknown data source " + quoted(source) +
                  "; use digits, libsvm:PATH, csv:PATH, npy:X,Y, npz:PATH, idx:DIR, text:PATH or synthetic");
}

Dataset read_given(const DataContent& given, std::size_t dim, const TableReading& table) {
  if (given.text.empty()) {
    Dataset samples = given.samples;
    if (dim == 0) return samples;
    check_columns(samples, dim);
    samples.columns = dim;
    return samples;
  }
  const std::string_view text = without_byte_order_mark(given.text);
  if (looks_like_libsvm(text)) return parse_libsvm(text, given.name, dim);
  return widen(parse_csv(text, given.name, table.options, table.encoding), given.name, dim);
}

std::optional<TableColumns> table_columns(std::string_view source, const std::filesystem::path& base,
                                          const TableOptions& options) {
  const auto path = path_of(source, "csv:");
  if (!path) return std::nullopt;
  const std::filesystem::path found = find_data(*path, base);
  return csv_columns([&] { return stream_text_file(found); }, found.string(), options);
}

Windows read_text(std::string_view source, const std::filesystem::path& base, const TextReading& how) {
  const auto path = path_of(source, "text:");
  if (!path) throw DataError("data source " + quoted(source) + " is not text; use text:PATH");
  const std::filesystem::path found = find_data(*path, base);
  const std::string text = read_text_file(found);
  if (how.by_speaker) return windows_of_speakers(text, found.string(), how.form, how.context);
  return how.form == TextForm::kNames ? list_of_names(text, found.string(), how.context)
                                      : running_text(text, found.string(), how.context);
}

}  // namespace gradwire
