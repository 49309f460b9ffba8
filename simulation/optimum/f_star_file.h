// File that caches f* of one problem.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace gradwire {

class FStarFile {
 public:
  // Names the file in `folder`, which need not exist yet. If `folder` is empty, nothing is kept. `problem`
  // contains everything that f depends on.
  FStarFile(const std::filesystem::path& folder, const std::string& problem);

  struct Kept {
    std::optional<double> value;  // nullopt if no f* was found
  };
  // Returns the content, or nullopt if the file is missing, damaged or of another problem.
  std::optional<Kept> read() const;
  // Writes the file atomically. Failing to write is not an error; the next run computes f* again.
  void write(const Kept& kept) const;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::string text(const Kept& kept) const;

  std::string problem_;
  std::filesystem::path path_;  // empty if nothing is kept
};

// Returns 16 hexadecimal digits: the checksum of a file, or of the names and bytes of a folder's files.
// Throws DataError.
std::string checksum_of(const std::filesystem::path& path);

}  // namespace gradwire
