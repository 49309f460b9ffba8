// The files in a zip archive, as numpy.savez writes it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

struct ZipEntry {
  std::string name;
  std::size_t size = 0;      // after inflation
  std::size_t packed = 0;    // in the archive
  std::size_t at = 0;        // place of its local header
  bool is_deflated = false;  // else stored
  unsigned checksum = 0;     // CRC-32
};

// Lists the files of an archive. `file` is for errors. Throws DataError.
std::vector<ZipEntry> list_zip(std::string_view bytes, const std::string& file);

// Returns the bytes of one file. Throws DataError if it is damaged.
std::string read_zip_entry(std::string_view bytes, const ZipEntry& entry, const std::string& file);

}  // namespace gradwire
