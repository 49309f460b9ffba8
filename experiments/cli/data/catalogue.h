// The public data sets that `gradwire data fetch` knows.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gradwire {

struct DataFile {
  std::string_view url;     // https
  std::string_view name;    // relative to data_cache(); gzipped if the name ends in .gz
  std::string_view sha256;  // 64 hexadecimal digits, for the stored file; empty if not known
  // Returns whether the server sends the file as bzip2, which the program unpacks.
  bool is_bzip2() const { return url.ends_with(".bz2"); }
};

struct DataSet {
  std::string_view name;
  std::string_view source;  // value of `data` in an experiment
  std::string_view about;
  std::span<const DataFile> files;
};

std::span<const DataSet> data_sets();
// Returns a line about a data set: its value of `data`, and the place of its file if it is here.
std::string data_set_text(const DataSet& set);
// Returns the data set of that name. Throws UsageError with the nearest name.
const DataSet& find_data_set(const std::string& name);

}  // namespace gradwire
