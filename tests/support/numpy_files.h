// Files as NumPy writes them.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>
#include <zlib.h>

namespace gradwire {

// Returns a file of numpy.save.
template <class T>
std::string npy(const std::string& descr, const std::string& shape, std::vector<T> numbers,
                const std::string& fortran = "False") {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  header.resize(117, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\0", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  bytes += header;
  for (T number : numbers) {
    std::array<char, sizeof(T)> raw;
    std::memcpy(raw.data(), &number, sizeof(T));
    bytes.append(raw.data(), raw.size());
  }
  return bytes;
}

inline void put_little(std::string& to, std::uint64_t number, int bytes) {
  for (int k = 0; k < bytes; ++k) to += k < 8 ? static_cast<char>(number >> (8 * k) & 0xff) : '\0';
}

inline std::string deflated(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(bytes.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Writes an archive as numpy.savez or numpy.savez_compressed does: local headers have a field of zip64.
inline std::string npz(const std::vector<std::pair<std::string, std::string>>& arrays,
                       bool is_compressed = false) {
  std::string out, directory;
  for (const auto& [name, bytes] : arrays) {
    const std::string packed = is_compressed ? deflated(bytes) : bytes;
    const auto checksum =
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    const std::size_t at = out.size();
    const auto common = [&](std::string& to, std::uint64_t packed_size, std::uint64_t size,
                            std::uint64_t extra) {
      put_little(to, 45, 2);
      put_little(to, 0, 2);
      put_little(to, is_compressed ? 8 : 0, 2);
      put_little(to, 0, 4);
      put_little(to, checksum, 4);
      put_little(to, packed_size, 4);
      put_little(to, size, 4);
      put_little(to, name.size(), 2);
      put_little(to, extra, 2);
    };
    out += "PK\3\4";
    common(out, 0xffffffff, 0xffffffff, 20);
    out += name;
    put_little(out, 1, 2);
    put_little(out, 16, 2);
    put_little(out, bytes.size(), 8);
    put_little(out, packed.size(), 8);
    out += packed;
    directory += "PK\1\2";
    put_little(directory, 45, 2);
    common(directory, packed.size(), bytes.size(), 0);
    put_little(directory, 0, 2 + 2 + 2 + 4);
    put_little(directory, at, 4);
    directory += name;
  }
  const std::size_t at = out.size();
  out += directory + "PK\5\6";
  put_little(out, 0, 4);
  put_little(out, arrays.size(), 2);
  put_little(out, arrays.size(), 2);
  put_little(out, directory.size(), 4);
  put_little(out, at, 4);
  put_little(out, 0, 2);
  return out;
}

}  // namespace gradwire
