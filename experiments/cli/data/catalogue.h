// The public data sets that `gradwire data fetch` knows.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gradwire {

struct DataFile {
  std::string_view url;     // https
  std::string_view name;    // below data_cache(), as it is kept: plain, or gzipped where the name says so
  std::string_view sha256;  // of the file as it is kept, 64 hexadecimal digits; empty: not known to us
  // The file is served in the compression of bzip2, which is taken off.
  bool is_bzip2() const { return url.ends_with(".bz2"); }
};

struct DataSet {
  std::string_view name;
  std::string_view source;  // `data` of an experiment, as its user writes it
  std::string_view about;
  std::span<const DataFile> files;
};

std::span<const DataSet> data_sets();
// Throws UsageError that suggests the nearest name.
const DataSet& find_data_set(const std::string& name);

}  // namespace gradwire
