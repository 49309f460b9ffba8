// A public data set into the cache: downloaded, or what is left of it, checked, unpacked.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "experiments/cli/data/catalogue.h"

namespace gradwire {

struct FetchRequest {
  std::filesystem::path folder;  // of the cache: data_cache()
  std::string mirror;  // a URL below which the files lie in place of their own, http or https; empty: none
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& line)> say;
  std::function<void(const std::string& name, std::uint64_t done, std::uint64_t size)>
      on_progress;  // size 0: not known
};

// A file is there under its name when it is whole and has its checksum; until then what has come is in
// NAME.part, from which the next call goes on. Where no checksum is known the first one is kept in
// NAME.sha256, and later ones must be that. Throws std::runtime_error: one line that says where to put which
// file by hand.
void fetch_data_set(const DataSet& set, const FetchRequest& request);

}  // namespace gradwire
