// Replaces fetch.cpp if a library that it needs is missing.
#include <stdexcept>

#include "experiments/cli/data/fetch.h"

namespace gradwire {

void fetch_data_set(const DataSet& set, const FetchRequest& request) {
  std::string files;
  for (const DataFile& file : set.files)
    files += (files.empty() ? "" : ", ") + std::string(file.url) + " as " +
             (request.folder / file.name).string() + (file.is_bzip2() ? " (unpacked by bunzip2)" : "");
  throw std::runtime_error(
      "this gradwire was built without libcurl, OpenSSL or bzip2, and cannot fetch data; by hand: put " +
      files);
}

}  // namespace gradwire
