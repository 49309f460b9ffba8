#include "engine/data/readers/bytes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text_lines.h"
#include "engine/data/dataset.h"
#include "engine/data/readers/decompressor.h"

namespace gradwire {
namespace {

constexpr std::size_t kInputBytes = std::size_t{1} << 13;

// Throws DataError if `bytes` begins a file in an unsupported compressed format.
void refuse_compressed(std::string_view bytes, const std::string& name) {
  struct PackedFormat {
    std::string_view magic, format, command;
  };
  using namespace std::string_view_literals;
  constexpr auto kPacked = std::to_array<PackedFormat>({
      {"\x28\xb5\x2f\xfd"sv, "zstd", "unzstd"},
      {"PK\x03\x04"sv, "zip", "unzip"},
      {"7z\xbc\xaf\x27\x1c"sv, "7z", "7z x"},
      {"\x1f\x9d"sv, "compress", "uncompress"},
#ifdef GRADWIRE_SMALL
      {"BZh"sv, "bzip2", "bunzip2"},
      {"\xfd\x37zXZ\0"sv, "xz", "unxz"},
#endif
  });
#ifdef GRADWIRE_SMALL
  constexpr const char* kRead = "but only gzip is read";
#else
  constexpr const char* kRead = "but only gzip, bzip2 and xz are read";
#endif
  for (const PackedFormat& packed : kPacked)
    if (bytes.starts_with(packed.magic))
      throw DataError(name + ": is compressed with " + std::string(packed.format) + ", " + kRead +
                      "; unpack it with `" + std::string(packed.command) + " " + name + "`");
}

class MemoryBytes final : public ByteStream {
 public:
  explicit MemoryBytes(std::string_view bytes) : rest_(bytes) {}
  std::size_t read(std::span<char> to) override {
    const std::size_t got = rest_.copy(to.data(), to.size());
    rest_.remove_prefix(got);
    return got;
  }

 private:
  std::string_view rest_;
};

// The bytes of a file, unchanged.
class RawFile final : public ByteStream {
 public:
  explicit RawFile(const std::filesystem::path& path) : name_(path.string()) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error))
      throw DataError(name_ + ": is a folder; give a file in it");
    file_.reset(std::fopen(name_.c_str(), "rb"));
    if (file_ == nullptr)
      throw DataError(name_ + ": cannot be opened: " + std::strerror(errno) +
                      "; check that it exists and is readable");
  }
  std::size_t read(std::span<char> to) override {
    const std::size_t got = std::fread(to.data(), 1, to.size(), file_.get());
    read_ += got;
    if (std::ferror(file_.get()) != 0)
      throw DataError(name_ + ": reading failed after " + std::to_string(read_) + " bytes");
    return got;
  }

 private:
  std::string name_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, &std::fclose};
  std::size_t read_ = 0;
};

// The bytes of `raw`, unpacked if they are compressed.
class PlainBytes final : public ByteStream {
 public:
  PlainBytes(std::unique_ptr<ByteStream> raw, std::string name)
      : raw_(std::move(raw)), name_(std::move(name)), in_(kInputBytes) {
    fill();
    decompressor_ = make_decompressor(input());
    is_compressed_ = decompressor_ != nullptr;
    if (!is_compressed_) refuse_compressed(input(), name_);
  }

  std::size_t read(std::span<char> to) override {
    if (is_compressed_) return decompress_to(to);
    if (used_ == have_) fill();
    const std::size_t got = std::min(to.size(), have_ - used_);
    std::copy_n(in_.data() + used_, got, to.data());
    used_ += got;
    return got;
  }

 private:
  std::string_view input() const { return {in_.data() + used_, have_ - used_}; }

  // Reads more bytes and keeps the unused ones.
  void fill() {
    std::copy(in_.begin() + static_cast<std::ptrdiff_t>(used_),
              in_.begin() + static_cast<std::ptrdiff_t>(have_), in_.begin());
    have_ -= used_;
    used_ = 0;
    // The first bytes tell the format, so a short read must not end here.
    while (have_ < in_.size()) {
      const std::size_t got = raw_->read(std::span(in_).subspan(have_));
      have_ += got;
      if (got == 0) break;
    }
  }

  std::size_t decompress_to(std::span<char> to) {
    while (decompressor_ != nullptr) {
      if (have_ - used_ < kFormatBytes) fill();
      const Decompressor::Step step = decompressor_->run(input(), to);
      used_ += step.read;
      if (step.state == Decompressor::State::kEnd) {
        begin_next_stream();
      } else if (step.state == Decompressor::State::kTooLarge) {
        throw DataError(name_ + ": needs more than " + std::to_string(kMaxDecompressorBytes >> 20) +
                        " MiB of memory to unpack; unpack it with `unxz " + name_ + "`");
      } else if (step.state == Decompressor::State::kDamaged || (step.read == 0 && step.written == 0)) {
        throw damaged();  // without progress, the input has ended inside the stream
      }
      if (step.written > 0) return step.written;
    }
    return 0;
  }

  // Files may hold several streams, and zeros after one of xz.
  void begin_next_stream() {
    const std::string format(decompressor_->format());
    for (fill(); format == "xz" && input().starts_with('\0'); fill())
      used_ += std::min(input().find_first_not_of('\0'), input().size());
    const bool has_ended = input().empty();
    decompressor_ = make_decompressor(input());
    if (!has_ended && (decompressor_ == nullptr || decompressor_->format() != format)) throw damaged(format);
  }

  DataError damaged(std::string_view format) const {
    return DataError(name_ + ": damaged or cut " + std::string(format) + " data; fetch the file again");
  }
  DataError damaged() const { return damaged(decompressor_->format()); }

  std::unique_ptr<ByteStream> raw_;
  std::string name_;
  std::vector<char> in_;
  std::size_t used_ = 0, have_ = 0;  // positions in `in_`
  bool is_compressed_ = false;
  std::unique_ptr<Decompressor> decompressor_;  // null after the last stream
};

class Limited final : public ByteStream {
 public:
  Limited(std::unique_ptr<ByteStream> bytes, std::string name, std::size_t max_bytes)
      : bytes_(std::move(bytes)), name_(std::move(name)), max_bytes_(max_bytes) {}
  std::size_t read(std::span<char> to) override {
    const std::size_t got = bytes_->read(to);
    read_ += got;
    if (read_ > max_bytes_)
      throw DataError(name_ + ": holds more than " + std::to_string(max_bytes_) +
                      " bytes, the limit for a data file; split it");
    return got;
  }

 private:
  std::unique_ptr<ByteStream> bytes_;
  std::string name_;
  std::size_t max_bytes_, read_ = 0;
};

// The bytes of `text` after its byte-order mark.
class TextBytes final : public ByteStream {
 public:
  TextBytes(std::unique_ptr<ByteStream> text, const std::string& name) : text_(std::move(text)) {
    constexpr std::size_t kMarkBytes = 3;
    std::size_t have = 0;
    start_.resize(kMarkBytes);
    while (have < kMarkBytes) {
      const std::size_t got = text_->read(std::span(start_).subspan(have));
      have += got;
      if (got == 0) break;
    }
    start_.resize(have);
    if (start_.starts_with("\xff\xfe") || start_.starts_with("\xfe\xff"))
      throw DataError(name + ": is text in UTF-16; save it as UTF-8");
    start_ = without_byte_order_mark(start_);
  }
  std::size_t read(std::span<char> to) override {
    const std::size_t got = start_.copy(to.data(), to.size());
    start_.erase(0, got);
    return got > 0 ? got : text_->read(to);
  }

 private:
  std::unique_ptr<ByteStream> text_;
  std::string start_;  // bytes that were read but not returned yet
};

std::unique_ptr<ByteStream> plain_bytes(const std::filesystem::path& path) {
  return std::make_unique<PlainBytes>(std::make_unique<RawFile>(path), path.string());
}

// Returns the first `count` bytes. The buffer grows as bytes arrive, because the size that the file system
// reports may be wrong.
std::string read_prefix(ByteStream& bytes, std::size_t count) {
  std::string out;
  for (std::size_t chunk = kInputBytes; out.size() < count; chunk = std::max(kInputBytes, out.size())) {
    const std::size_t before = out.size();
    const std::size_t wanted = std::min(chunk, count - before);
    out.resize(before + wanted);
    std::size_t got = 0;
    while (got < wanted) {
      const std::size_t more = bytes.read(std::span(out).subspan(before + got, wanted - got));
      if (more == 0) {
        out.resize(before + got);
        return out;
      }
      got += more;
    }
  }
  return out;
}

}  // namespace

std::unique_ptr<ByteStream> stream_file_bytes(const std::filesystem::path& path, std::size_t max_bytes) {
  return std::make_unique<Limited>(plain_bytes(path), path.string(), max_bytes);
}

std::string inflate_prefix(std::string_view packed, const std::string& name, std::size_t max_bytes) {
  PlainBytes bytes(std::make_unique<MemoryBytes>(packed), name);
  return read_prefix(bytes, max_bytes);
}

std::string read_file_prefix(const std::filesystem::path& path, std::size_t count) {
  return read_prefix(*plain_bytes(path), count);
}

std::unique_ptr<ByteStream> stream_text_file(const std::filesystem::path& path) {
  return std::make_unique<TextBytes>(stream_file_bytes(path), path.string());
}

std::string read_text_file(const std::filesystem::path& path) {
  return read_prefix(*stream_text_file(path), kMaxFileBytes + 1);
}

std::string read_file_bytes(const std::filesystem::path& path, std::size_t max_bytes) {
  return read_prefix(*stream_file_bytes(path, max_bytes), max_bytes + 1);
}

std::string read_packed_bytes(const std::filesystem::path& path, std::size_t max_bytes) {
  Limited bytes(std::make_unique<RawFile>(path), path.string(), max_bytes);
  return read_prefix(bytes, max_bytes + 1);
}

}  // namespace gradwire
