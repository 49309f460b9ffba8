// Bytes compressed with bzip2 and xz, for tests; gzip() is in data_files.h.
#pragma once

#include <bzlib.h>
#include <cstdint>
#include <lzma.h>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gradwire {

inline std::string bzip2(std::string_view bytes) {
  std::string out(bytes.size() + bytes.size() / 50 + 1000, '\0');
  auto size = static_cast<unsigned>(out.size());
  if (BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(bytes.data()),
                               static_cast<unsigned>(bytes.size()), 9, 0, 0) != BZ_OK)
    throw std::runtime_error("BZ2_bzBuffToBuffCompress failed");
  out.resize(size);
  return out;
}

inline std::string xz(std::string_view bytes) {
  std::string out(lzma_stream_buffer_bound(bytes.size()), '\0');
  std::size_t size = 0;
  if (lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, nullptr,
                              reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(),
                              reinterpret_cast<std::uint8_t*>(out.data()), &size, out.size()) != LZMA_OK)
    throw std::runtime_error("lzma_easy_buffer_encode failed");
  out.resize(size);
  return out;
}

// Returns the same, but its header says that its reader needs 2^log_bytes bytes of memory.
inline std::string xz_with_memory(std::string_view bytes, int log_bytes) {
  constexpr std::size_t kBlock = 12;  // after the header of the stream
  std::string out = xz(bytes);
  out[out.find("\x21\x01", kBlock) + 2] = static_cast<char>(2 * (log_bytes - 12));  // after the filter's id
  const std::size_t size = 4 * (static_cast<unsigned char>(out[kBlock]) + std::size_t{1}) - 4;
  const std::uint32_t checksum =
      lzma_crc32(reinterpret_cast<const std::uint8_t*>(out.data()) + kBlock, size, 0);
  for (std::size_t k = 0; k < 4; ++k) out[kBlock + size + k] = static_cast<char>(checksum >> (8 * k));
  return out;
}

}  // namespace gradwire
