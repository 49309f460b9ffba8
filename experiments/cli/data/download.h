// Downloads a file over HTTP, or the rest of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace gradwire {

struct Download {
  std::string url;
  bool may_be_http = false;    // false for https only, also after redirections
  int file = -1;               // open for writing; contains the first bytes of the file at `url`
  std::uint64_t have = 0;      // its size
  std::uint64_t max_size = 0;  // bytes; more is an error
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::uint64_t done, std::uint64_t size)>
      on_progress;  // for the whole file; size is 0 if not known
};

// Appends the rest of the file. If the server does not support ranges, it sends all, and the file is
// overwritten. A failed download keeps the bytes that have arrived. An error is one line with the URL.
Status download(const Download& what);

}  // namespace gradwire
