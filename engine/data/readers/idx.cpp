#include "engine/data/readers/idx.h"

#include <array>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/readers/bytes.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kUnsignedByteMagic = 0x0800;  // the low byte is the number of dimensions

struct IdxFile {
  std::string name;  // for errors
  std::vector<std::uint32_t> sizes;
  std::string bytes;  // the whole file
  std::span<const unsigned char> body;
};

std::uint32_t big_endian_32(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

IdxFile read_idx_file(const std::filesystem::path& path, std::size_t dimensions) {
  IdxFile file{.name = path.string(), .sizes = {}, .bytes = {}, .body = {}};
  const std::size_t header_bytes = 4 + 4 * dimensions;
  const std::string header = read_file_prefix(path, header_bytes);
  if (header.size() < header_bytes || big_endian_32(header, 0) != (kUnsignedByteMagic | dimensions)) {
    throw DataError(file.name + ": has no IDX header of unsigned bytes in " + std::to_string(dimensions) +
                    " dimensions; fetch the file again");
  }
  // The file may declare wrong sizes. So bound them, and compare them with the bytes in the file, before
  // memory is allocated.
  std::size_t body_bytes = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    file.sizes.push_back(big_endian_32(header, 4 + 4 * i));
    if (file.sizes.back() == 0) throw DataError(file.name + ": a dimension is 0, so it holds no samples");
    if (body_bytes > kMaxFileBytes / file.sizes.back()) {
      throw DataError(file.name + ": declares more than " + std::to_string(kMaxFileBytes) +
                      " bytes, the limit for a data file");
    }
    body_bytes *= file.sizes.back();
  }
  file.bytes = read_file_prefix(path, header_bytes + body_bytes + 1);
  if (file.bytes.size() != header_bytes + body_bytes) {
    throw DataError(file.name + ": declares " + std::to_string(body_bytes) + " bytes of data but holds " +
                    (file.bytes.size() > header_bytes + body_bytes
                         ? "more"
                         : std::to_string(file.bytes.size() - header_bytes)) +
                    "; fetch the file again");
  }
  file.body = std::span(reinterpret_cast<const unsigned char*>(file.bytes.data()) + header_bytes, body_bytes);
  return file;
}

std::vector<std::string> spellings(const std::string& part, const std::string& kind) {
  std::vector<std::string> names;
  for (const char* separator : {"-", "."})
    for (const char* end : {"", ".gz"}) names.push_back(part + separator + kind + end);
  return names;
}

std::optional<std::filesystem::path> find_part(const std::filesystem::path& folder, const std::string& part,
                                               const std::string& kind) {
  for (const std::string& name : spellings(part, kind)) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(folder / name, ignored)) return folder / name;
  }
  return std::nullopt;
}

// Returns the prefix before `set` in the names of its images: "" for MNIST, "emnist-letters-" for some of
// EMNIST. Returns nullopt if there are no images. Throws DataError if there are several prefixes.
std::optional<std::string> find_prefix(const std::filesystem::path& folder, const std::string& set) {
  const std::vector<std::string> names = spellings(set + "-images", "idx3-ubyte");
  std::set<std::string> prefixes;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename().string();
    for (const std::string& name : names) {
      const bool is_word = file.size() == name.size() ||
                           (file.size() > name.size() && file[file.size() - name.size() - 1] == '-');
      if (is_word && file.ends_with(name)) prefixes.insert(file.substr(0, file.size() - name.size()));
    }
  }
  if (prefixes.empty()) return std::nullopt;
  if (prefixes.size() == 1 || prefixes.contains("")) return *prefixes.begin();
  throw DataError(folder.string() + ": holds " + *prefixes.begin() + names.front() + " and " +
                  *prefixes.rbegin() + names.front() + "; move the files of each set to its own folder");
}

Dataset to_dataset(const IdxFile& images, const IdxFile& labels, const KeepRow& keep) {
  const std::size_t rows = images.sizes[0];
  Dataset data;
  data.columns = std::size_t{images.sizes[1]} * images.sizes[2];
  if (data.columns > 0xfffffffe) throw DataError(images.name + ": images of more than 4294967294 pixels");
  data.row_start.reserve(rows + 1);
  data.label.assign(labels.body.begin(), labels.body.end());
  for (std::size_t r = 0; r < rows; ++r) {
    const auto pixels = images.body.subspan(r * data.columns, data.columns);
    for (std::size_t c = 0; c < data.columns && (!keep || keep(r)); ++c) {
      if (pixels[c] == 0) continue;
      data.column.push_back(static_cast<std::uint32_t>(c));
      data.value.push_back(pixels[c] / 255.0);
    }
    data.row_start.push_back(data.column.size());
  }
  return data;
}

}  // namespace

Dataset read_idx(const std::filesystem::path& folder, const KeepRow& keep, SampleUse use) {
  const auto order =
      use == SampleUse::kTest ? std::array{"t10k", "test", "train"} : std::array{"train", "t10k", "test"};
  for (const char* const name : order) {
    const std::optional<std::string> prefix = find_prefix(folder, name);
    if (!prefix) continue;
    const std::string set = *prefix + name;
    const auto images_path = find_part(folder, set + "-images", "idx3-ubyte");
    if (!images_path) continue;
    const auto labels_path = find_part(folder, set + "-labels", "idx1-ubyte");
    if (!labels_path) {
      throw DataError(folder.string() + ": holds " + images_path->filename().string() + " but no " + set +
                      "-labels-idx1-ubyte or .gz; add it");
    }
    const IdxFile images = read_idx_file(*images_path, 3);
    const IdxFile labels = read_idx_file(*labels_path, 1);
    if (images.sizes[0] != labels.sizes[0]) {
      throw DataError(labels.name + ": " + std::to_string(labels.sizes[0]) + " labels for " +
                      std::to_string(images.sizes[0]) + " images; fetch both files again");
    }
    return to_dataset(images, labels, keep);
  }
  throw DataError(
      folder.string() +
      ": holds no train-images-idx3-ubyte or t10k-images-idx3-ubyte, plain or .gz; put images and "
      "labels there, or run `gradwire data fetch mnist`");
}

}  // namespace gradwire
