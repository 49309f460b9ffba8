// A file from a server, by HTTP, to the end of what has come before.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace gradwire {

struct Download {
  std::string url;
  bool may_be_http = false;    // else https alone, also behind redirections
  int file = -1;               // open for writing; what it holds are the first bytes of what is at `url`
  std::uint64_t have = 0;      // its size
  std::uint64_t max_size = 0;  // bytes; more is an error
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::uint64_t done, std::uint64_t size)>
      on_progress;  // of the whole file; size 0: not known
};

// Appends the rest; a server that knows no ranges sends all, and the file begins anew. What has come stays
// where it fails. Error: one line that names the url.
Status download(const Download& what);

}  // namespace gradwire
