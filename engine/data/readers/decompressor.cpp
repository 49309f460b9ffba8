#include "engine/data/readers/decompressor.h"

#include <algorithm>
#include <new>
#include <zlib.h>
#ifndef GRADWIRE_SMALL
#include <bzlib.h>
#include <lzma.h>
#endif

namespace gradwire {
namespace {

using State = Decompressor::State;
using namespace std::string_view_literals;

constexpr std::size_t kStepBytes = std::size_t{1} << 30;  // zlib and bzip2 count in 32 bits
constexpr int kGzipWindowBits = 15 + 16;                  // the largest window of zlib; +16: gzip framing

unsigned step_bytes(std::size_t size) { return static_cast<unsigned>(std::min(size, kStepBytes)); }

class Gzip final : public Decompressor {
 public:
  Gzip() {
    if (inflateInit2(&stream_, kGzipWindowBits) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  std::string_view format() const override { return "gzip"; }
  Step run(std::string_view input, std::span<char> to) override {
    const unsigned given = step_bytes(input.size()), room = step_bytes(to.size());
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = room;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    const bool needs_more = result == Z_OK || result == Z_BUF_ERROR;
    return {result == Z_STREAM_END ? State::kEnd
            : needs_more           ? State::kMore
                                   : State::kDamaged,
            given - stream_.avail_in, room - stream_.avail_out};
  }

 private:
  z_stream stream_{};
};

#ifndef GRADWIRE_SMALL
class Bzip2 final : public Decompressor {
 public:
  Bzip2() {
    if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) throw std::bad_alloc();
  }
  ~Bzip2() override { BZ2_bzDecompressEnd(&stream_); }
  Bzip2(const Bzip2&) = delete;
  Bzip2& operator=(const Bzip2&) = delete;

  std::string_view format() const override { return "bzip2"; }
  Step run(std::string_view input, std::span<char> to) override {
    const unsigned given = step_bytes(input.size()), room = step_bytes(to.size());
    stream_.next_in = const_cast<char*>(input.data());
    stream_.avail_in = given;
    stream_.next_out = to.data();
    stream_.avail_out = room;
    const int result = BZ2_bzDecompress(&stream_);
    if (result == BZ_MEM_ERROR) throw std::bad_alloc();
    return {result == BZ_STREAM_END ? State::kEnd
            : result == BZ_OK       ? State::kMore
                                    : State::kDamaged,
            given - stream_.avail_in, room - stream_.avail_out};
  }

 private:
  bz_stream stream_{};
};

class Xz final : public Decompressor {
 public:
  Xz() {
    if (lzma_stream_decoder(&stream_, kMaxDecompressorBytes, 0) != LZMA_OK) throw std::bad_alloc();
  }
  ~Xz() override { lzma_end(&stream_); }
  Xz(const Xz&) = delete;
  Xz& operator=(const Xz&) = delete;

  std::string_view format() const override { return "xz"; }
  Step run(std::string_view input, std::span<char> to) override {
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(input.data());
    stream_.avail_in = input.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(to.data());
    stream_.avail_out = to.size();
    const lzma_ret result = lzma_code(&stream_, LZMA_RUN);
    if (result == LZMA_MEM_ERROR) throw std::bad_alloc();
    const bool needs_more = result == LZMA_OK || result == LZMA_BUF_ERROR;
    return {result == LZMA_STREAM_END       ? State::kEnd
            : result == LZMA_MEMLIMIT_ERROR ? State::kTooLarge
            : needs_more                    ? State::kMore
                                            : State::kDamaged,
            input.size() - stream_.avail_in, to.size() - stream_.avail_out};
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

#endif

}  // namespace

std::unique_ptr<Decompressor> make_decompressor(std::string_view start) {
  if (start.starts_with("\x1f\x8b")) return std::make_unique<Gzip>();
#ifndef GRADWIRE_SMALL
  // A block of bzip2, or the end of an empty file, follows "BZh" and the level.
  const std::string_view block = start.substr(std::min<std::size_t>(4, start.size())).substr(0, 6);
  if (start.starts_with("BZh") && (block == "1AY&SY" || block == "\x17\x72\x45\x38\x50\x90"sv))
    return std::make_unique<Bzip2>();
  if (start.starts_with("\xfd"
                        "7zXZ\0"sv))
    return std::make_unique<Xz>();
#endif
  return nullptr;
}

}  // namespace gradwire
