// A file that keeps f* of one problem.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace gradwire {

class FStarFile {
 public:
  // In `folder`, which need not be there yet; empty: nothing is kept. `problem` says all that f depends on.
  FStarFile(const std::filesystem::path& folder, const std::string& problem);

  struct Kept {
    std::optional<double> value;  // nothing: it was looked for in vain
  };
  // Nothing: there is no such file, it is of another problem, or damaged.
  std::optional<Kept> read() const;
  // Whole or not at all. A folder that cannot be written is none: the next run computes again.
  void write(const Kept& kept) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::string text(const Kept& kept) const;

  std::string problem_;
  std::filesystem::path path_;  // empty: nothing is kept
};

// 16 hexadecimal digits of the bytes of a file, or of the names and bytes of a folder's files. Throws
// DataError.
std::string checksum_of(const std::filesystem::path& path);

}  // namespace gradwire
