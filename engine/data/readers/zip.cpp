#include "engine/data/readers/zip.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <zlib.h>

#include "engine/data/dataset.h"
#include "engine/data/readers/bytes.h"

namespace gradwire {
namespace {

// Sizes and places in PKWARE's APPNOTE.TXT, 4.3.
constexpr std::size_t kEndBytes = 22, kLongestComment = 65535, kDirectoryBytes = 46, kLocalBytes = 30;
constexpr std::string_view kEnd = "PK\5\6", kDirectory = "PK\1\2", kLocal = "PK\3\4";
constexpr std::uint32_t kIsInZip64 = 0xffffffff;
constexpr unsigned kStored = 0, kDeflated = 8, kEncrypted = 1;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

DataError damaged(const std::string& file) {
  return DataError(file + ": damaged or cut zip archive; copy the file again");
}

// Returns a little-endian number of `size` bytes. REQUIRES: it is inside the bytes.
std::uint32_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t k = 0; k < size; ++k)
    value |= std::uint32_t{static_cast<unsigned char>(bytes[at + k])} << (8 * k);
  return value;
}

std::string inflate_raw(std::string_view packed, std::size_t size, const std::string& file) {
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) throw std::bad_alloc();  // no header; the largest window
  const struct Ends {
    z_stream* of;
    ~Ends() { inflateEnd(of); }
  } ends{&stream};
  std::string out;
  int result = Z_OK;
  // The buffer grows as bytes arrive, because the size in the archive may be wrong.
  while (result != Z_STREAM_END) {
    const std::size_t have = out.size(), room = std::min(kPieceBytes, size - have + 1);
    out.resize(have + room);
    const std::size_t given = std::min<std::size_t>(packed.size(), 1u << 30);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + have);
    stream.avail_out = static_cast<uInt>(room);
    result = inflate(&stream, Z_NO_FLUSH);
    packed.remove_prefix(given - stream.avail_in);
    out.resize(have + room - stream.avail_out);
    if ((result != Z_OK && result != Z_STREAM_END) || out.size() > size) throw damaged(file);
  }
  if (out.size() != size) throw damaged(file);
  return out;
}

}  // namespace

std::vector<ZipEntry> list_zip(std::string_view bytes, const std::string& file) {
  if (!bytes.starts_with(kLocal))
    throw DataError(file + ": is not a zip archive, as numpy.savez writes it; name another file");
  if (bytes.size() < kEndBytes) throw damaged(file);
  const std::size_t from = bytes.size() - std::min(bytes.size(), kEndBytes + kLongestComment);
  const std::size_t end = bytes.rfind(kEnd);
  if (end == std::string_view::npos || end < from || bytes.size() - end < kEndBytes) throw damaged(file);
  const std::size_t count = number(bytes, end + 10, 2);
  std::size_t at = number(bytes, end + 16, 4);
  std::vector<ZipEntry> entries;
  for (std::size_t k = 0; k < count; ++k) {
    if (at > end || end - at < kDirectoryBytes || bytes.substr(at, 4) != kDirectory) throw damaged(file);
    const unsigned flags = number(bytes, at + 8, 2), method = number(bytes, at + 10, 2);
    const std::size_t name_bytes = number(bytes, at + 28, 2);
    const std::size_t size =
        kDirectoryBytes + name_bytes + number(bytes, at + 30, 2) + number(bytes, at + 32, 2);
    if (end - at < size) throw damaged(file);
    ZipEntry entry;
    entry.name = bytes.substr(at + kDirectoryBytes, name_bytes);
    entry.checksum = number(bytes, at + 16, 4);
    entry.packed = number(bytes, at + 20, 4);
    entry.size = number(bytes, at + 24, 4);
    entry.at = number(bytes, at + 42, 4);
    entry.is_deflated = method == kDeflated;
    if (std::max({entry.packed, entry.size, entry.at}) == kIsInZip64)
      throw DataError(file +
                      ": holds an array of 4 GiB or more; save the arrays with numpy.save and use npy:");
    if ((flags & kEncrypted) != 0 || (method != kStored && method != kDeflated))
      throw DataError(file + ": is encrypted or packed in an unknown way; save it again with numpy.savez");
    entries.push_back(std::move(entry));
    at += size;
  }
  return entries;
}

std::string read_zip_entry(std::string_view bytes, const ZipEntry& entry, const std::string& file) {
  if (entry.at > bytes.size() || bytes.size() - entry.at < kLocalBytes || bytes.substr(entry.at, 4) != kLocal)
    throw damaged(file);
  const std::size_t at =
      entry.at + kLocalBytes + number(bytes, entry.at + 26, 2) + number(bytes, entry.at + 28, 2);
  if (at > bytes.size() || bytes.size() - at < entry.packed) throw damaged(file);
  const std::string_view packed = bytes.substr(at, entry.packed);
  if (!entry.is_deflated && entry.size != entry.packed) throw damaged(file);
  std::string out = entry.is_deflated ? inflate_raw(packed, entry.size, file) : std::string(packed);
  if (crc32_z(0, reinterpret_cast<const Bytef*>(out.data()), out.size()) != entry.checksum)
    throw damaged(file);
  return out;
}

}  // namespace gradwire
