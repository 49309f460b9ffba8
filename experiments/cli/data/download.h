// The download of a file, or of its missing rest, over HTTP.
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
  std::uint64_t have = 0;      // size of these first bytes
  std::uint64_t max_size = 0;  // limit in bytes for the whole file
  const std::atomic<bool>* stop = nullptr;
  // Receives the number of bytes so far and the size of the whole file, which is 0 if not known.
  std::function<void(std::uint64_t done, std::uint64_t size)> on_progress;
};

// Appends the rest of the file. If the server does not support ranges, it sends the whole file, which
// overwrites the first bytes. A failed download keeps the bytes that have arrived. An error is one line with
// the URL.
Status download(const Download& what);

}  // namespace gradwire
