#include "simulation/optimum/f_star_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <unistd.h>
#include <vector>

#include "base/fnv1a.h"
#include "base/value.h"
#include "engine/data/dataset.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kFileHead = "gradwire f_star 1\n", kValue = "value ", kSum = "checksum ";
constexpr std::string_view kNoValue = "none";
constexpr std::uintmax_t kLargestFile = 4u << 20;

std::string hash_of(std::string_view text) {
  Fnv1a hash;
  hash.add(text);
  return hash.text();
}

void add_file(Fnv1a& hash, const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<char> block(1 << 20);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0)
    hash.add({block.data(), static_cast<std::size_t>(in.gcount())});
  if (!in.eof() || in.bad()) throw DataError(file.string() + ": cannot be read: " + std::strerror(errno));
}

std::string read_whole(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error || size > kLargestFile) return "";
  std::ifstream in(file, std::ios::binary);
  std::string text(size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

FStarFile::FStarFile(const fs::path& folder, const std::string& problem) : problem_(problem) {
  if (!folder.empty()) path_ = folder / "f_star" / (hash_of(problem) + ".txt");
}

std::string FStarFile::text(const Kept& kept) const {
  std::string text(kFileHead);
  text +=
      std::string(kValue) + (kept.value ? number_text(*kept.value) : std::string(kNoValue)) + "\n" + problem_;
  return text + std::string(kSum) + hash_of(text) + "\n";
}

std::optional<FStarFile::Kept> FStarFile::read() const {
  if (path_.empty()) return std::nullopt;
  const std::string found = read_whole(path_);
  const std::size_t at = kFileHead.size() + kValue.size(), end = found.find('\n', kFileHead.size());
  if (end == std::string::npos || end < at) return std::nullopt;
  const std::string_view spelled = std::string_view(found).substr(at, end - at);
  Kept kept;
  if (spelled != kNoValue) {
    const auto [rest, error] =
        std::from_chars(spelled.data(), spelled.data() + spelled.size(), kept.value.emplace());
    if (error != std::errc() || rest != spelled.data() + spelled.size()) return std::nullopt;
  }
  if (found != text(kept)) return std::nullopt;
  return kept;
}

void FStarFile::write(const Kept& kept) const {
  if (path_.empty()) return;
  std::error_code error;
  fs::create_directories(path_.parent_path(), error);
  const fs::path next = path_.string() + "." + std::to_string(getpid());
  std::ofstream out(next, std::ios::binary | std::ios::trunc);
  out << text(kept);
  out.close();
  if (out) fs::rename(next, path_, error);
  if (!out || error) fs::remove(next, error);
}

std::string checksum_of(const fs::path& path) {
  Fnv1a hash;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    add_file(hash, path);
    return hash.text();
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.is_regular_file(error)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    hash.add(file.filename().string());
    add_file(hash, file);
  }
  return hash.text();
}

}  // namespace gradwire
