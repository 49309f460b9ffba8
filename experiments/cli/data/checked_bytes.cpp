#include "experiments/cli/data/checked_bytes.h"

#include <array>
#include <bzlib.h>
#include <cerrno>
#include <cstring>
#include <memory>
#include <openssl/evp.h>
#include <sys/types.h>
#include <unistd.h>

namespace gradwire {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

// A reader of a file, block by block from its beginning. It neither uses nor moves the offset of the open
// file.
class FileChunks {
 public:
  explicit FileChunks(int file) : file_(file) {}
  // Returns the next bytes, or an empty view at the end.
  Result<std::string_view> next() {
    const ssize_t size = ::pread(file_, chunk_.data(), chunk_.size(), at_);
    if (size < 0) return Error{std::strerror(errno), ErrorKind::kSystem};
    at_ += size;
    return std::string_view(chunk_.data(), static_cast<std::size_t>(size));
  }

 private:
  int file_;
  off_t at_ = 0;
  std::array<char, kBlockBytes> chunk_;
};

}  // namespace

Result<std::string> sha256_of(int file) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> state(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (state == nullptr || EVP_DigestInit_ex(state.get(), EVP_sha256(), nullptr) != 1)
    return Error{"OpenSSL has no SHA-256 here", ErrorKind::kSystem};
  FileChunks chunks(file);
  for (;;) {
    const Result<std::string_view> chunk = chunks.next();
    if (!chunk) return chunk.error();
    if (chunk->empty()) break;
    EVP_DigestUpdate(state.get(), chunk->data(), chunk->size());
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  EVP_DigestFinal_ex(state.get(), digest.data(), &size);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned k = 0; k < size; ++k) {
    text += kDigits[digest[k] >> 4];
    text += kDigits[digest[k] & 15];
  }
  return text;
}

Result<std::string> unpack_bzip2(int file, std::size_t max_bytes) {
  bz_stream stream{};
  if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) return Error{"there is not enough memory to unpack it"};
  const std::unique_ptr<bz_stream, decltype(&BZ2_bzDecompressEnd)> owner(&stream, BZ2_bzDecompressEnd);
  FileChunks chunks(file);
  std::string plain;
  std::array<char, kBlockBytes> unpacked;
  std::string in;
  bool has_ended = false;  // true at the end of a bzip2 stream; another one may follow
  for (;;) {
    if (stream.avail_in == 0) {
      const Result<std::string_view> chunk = chunks.next();
      if (!chunk) return chunk.error();
      if (chunk->empty()) break;
      in = *chunk;
      stream.next_in = in.data();
      stream.avail_in = static_cast<unsigned>(in.size());
    }
    if (has_ended) {
      char* const rest = stream.next_in;
      const unsigned left = stream.avail_in;
      BZ2_bzDecompressEnd(&stream);
      stream = {};
      if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK)
        return Error{"there is not enough memory to unpack it"};
      stream.next_in = rest;
      stream.avail_in = left;
      has_ended = false;
    }
    stream.next_out = unpacked.data();
    stream.avail_out = static_cast<unsigned>(unpacked.size());
    const int code = BZ2_bzDecompress(&stream);
    if (code != BZ_OK && code != BZ_STREAM_END) return Error{"it is not a bzip2 file, or it is damaged"};
    plain.append(unpacked.data(), unpacked.size() - stream.avail_out);
    if (plain.size() > max_bytes)
      return Error{"it contains more than " + std::to_string(max_bytes) + " bytes"};
    has_ended = code == BZ_STREAM_END;
  }
  if (!has_ended) return Error{"the bzip2 file is truncated"};
  return plain;
}

}  // namespace gradwire
