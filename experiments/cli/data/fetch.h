// Fetches a public data set into the cache: downloads, checks and unpacks it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "experiments/cli/data/catalogue.h"

namespace gradwire {

struct FetchRequest {
  std::filesystem::path folder;  // the cache: data_cache()
  std::string mirror;  // URL (http or https) of a folder to fetch the files from; empty for their own URLs
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& line)> say;
  // Receives the number of bytes of a file so far and its size, which is 0 if not known.
  std::function<void(const std::string& name, std::uint64_t done, std::uint64_t size)> on_progress;
};

// Fetches all files of `set`. A file gets its name once it is complete and its checksum is right. Until then
// its bytes are in NAME.part, which the next call continues. If no checksum is known, that of the first
// download is stored in NAME.sha256, and later downloads must match it. Throws std::runtime_error: one line
// that says where to put which file by hand.
void fetch_data_set(const DataSet& set, const FetchRequest& request);

}  // namespace gradwire
