#include "base/whole_file.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <memory>

namespace gradwire {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

}  // namespace

std::optional<std::string> whole_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return std::nullopt;
  std::string bytes;
  std::array<char, 4096> piece;
  for (std::size_t got = piece.size(); got == piece.size() && bytes.size() < kMostBytes;) {
    got = std::fread(piece.data(), 1, piece.size(), file.get());
    bytes.append(piece.data(), got);
  }
  if (std::ferror(file.get()) != 0) return std::nullopt;
  return bytes;
}

}  // namespace gradwire
