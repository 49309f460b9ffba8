#include "engine/data/bytes.h"

#include <algorithm>
#include <fstream>
#include <new>
#include <zlib.h>

#include "engine/dataset.h"

namespace gradwire {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 16;
constexpr int kGzipWindowBits = 15 + 16;  // zlib's largest window; +16: gzip, not zlib, framing

// Owns zlib's state, which inflateInit2 allocates.
class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream_, kGzipWindowBits) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

// The first `max_bytes` bytes as they lie on the disk.
std::string read_raw(const std::filesystem::path& path, std::size_t max_bytes) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw DataError(path.string() + ": is a folder; name a file in it");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(path.string() + ": cannot be opened; check that it exists and may be read");
  std::string bytes;
  // Grows while bytes arrive: the size that the file system reports does not prove that so many bytes can be
  // read.
  for (std::size_t chunk = kChunkBytes; bytes.size() < max_bytes;
       chunk = std::max(kChunkBytes, bytes.size())) {
    const std::size_t wanted = std::min(chunk, max_bytes - bytes.size());
    const std::size_t before = bytes.size();
    bytes.resize(before + wanted);
    file.read(bytes.data() + before, static_cast<std::streamsize>(wanted));
    const auto got = static_cast<std::size_t>(file.gcount());
    bytes.resize(before + got);
    if (got < wanted) break;
  }
  if (file.bad())
    throw DataError(path.string() + ": reading failed after " + std::to_string(bytes.size()) + " bytes");
  return bytes;
}

}  // namespace

std::string inflate_prefix(std::string_view gzipped, const std::string& name, std::size_t max_bytes) {
  const auto damaged = [&name] {
    return DataError(name + ": damaged or cut gzip data; fetch the file again");
  };
  Inflater inflater;
  z_stream& stream = inflater.stream();
  std::string out;
  std::size_t used = 0;  // bytes of `gzipped`
  while (out.size() < max_bytes) {
    const std::size_t before = out.size();
    const std::size_t room =
        std::min({std::max(kChunkBytes, before), max_bytes - before, std::size_t{1} << 30});
    const std::size_t offered =
        std::min(gzipped.size() - used, std::size_t{1} << 30);  // zlib counts in 32 bits
    out.resize(before + room);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzipped.data() + used));
    stream.avail_in = static_cast<uInt>(offered);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream, Z_NO_FLUSH);
    used += offered - stream.avail_in;
    out.resize(before + room - stream.avail_out);
    if (result == Z_STREAM_END) {
      if (used == gzipped.size()) break;
      // gzip files may be concatenated.
      if (!is_gzip(gzipped.substr(used)) || inflateReset(&stream) != Z_OK) throw damaged();
    } else if (result != Z_OK) {
      throw damaged();  // also Z_BUF_ERROR: the input ended inside the stream
    }
  }
  return out;
}

std::string read_file_prefix(const std::filesystem::path& path, std::size_t count) {
  // Two bytes tell whether it is gzip; a gzip prefix of `count` bytes may need the whole file.
  if (!is_gzip(read_raw(path, 2))) return read_raw(path, count);
  const std::string raw = read_raw(path, kMaxFileBytes);
  return inflate_prefix(raw, path.string(), count);
}

std::string read_file_bytes(const std::filesystem::path& path, std::size_t max_bytes) {
  std::string bytes = read_file_prefix(path, max_bytes + 1);
  if (bytes.size() > max_bytes) {
    throw DataError(path.string() + ": holds more than " + std::to_string(max_bytes) +
                    " bytes, the limit for a data file; split it");
  }
  return bytes;
}

}  // namespace gradwire
