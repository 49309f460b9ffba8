// The file operations that durability needs, in one folder. Abstract, so that tests can fill, tear and crash
// a disk.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gradwire {

// Errors name the file, what is wrong, and what to do. Different threads may use different files.
class Disk {
 public:
  using Segments = std::span<const std::string_view>;

  virtual ~Disk() = default;
  virtual Result<std::vector<std::string>> list() = 0;  // the names of all files, ascending
  virtual Result<std::string> read(const std::string& name) = 0;
  // Creates or truncates the file, and writes it. The bytes survive the end of this process, but a power loss
  // only after sync(). A new name, also one from rename(), survives a power loss only after sync_folder().
  virtual Status write(const std::string& name, Segments segments) = 0;
  // Writes the chunks that `next` returns, until one is empty. A chunk must stay valid until the following
  // call.
  virtual Status write_chunks(const std::string& name, const std::function<std::string_view()>& next) {
    std::string all;
    for (std::string_view chunk = next(); !chunk.empty(); chunk = next()) all += chunk;
    const std::string_view bytes = all;
    return write(name, std::span(&bytes, 1));
  }
  // Appends to the file; creates it if it does not exist. After an error the file may end with only a part of
  // the segments.
  virtual Status append(const std::string& name, Segments segments) = 0;
  virtual Status sync(const std::string& name) = 0;
  virtual Status sync_folder() = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& name) = 0;
};

}  // namespace gradwire
