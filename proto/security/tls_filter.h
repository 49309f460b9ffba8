// One end of one TLS connection as a filter of bytes. Only for .cpp files of this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/security/openssl.h"
#include "proto/security/stream_filter.h"

namespace gradwire {

class TlsFilter final : public StreamFilter {
 public:
  enum class End : bool { kServer, kClient };
  // `ssl` is already set up for this end.
  TlsFilter(SslPtr ssl, End end);
  ~TlsFilter() override;

  Status feed(std::span<const std::byte> arrived) override;
  Result<std::size_t> read(std::span<std::byte> to) override;
  bool has_plain() const override { return ready_ && has_byte_; }
  Status write(std::span<const std::byte> plain) override;
  void end() override;
  std::span<const std::byte> outgoing() const override { return std::span(out_).subspan(out_at_); }
  void sent(std::size_t bytes) override;
  bool ready() const override { return ready_; }
  // Records the peer's certificate that this end does not trust, for the error.
  void note_distrust(const X509* certificate);

 private:
  static BIO_METHOD* method();
  static void note_message(int is_written, int version, int type, const void* bytes, std::size_t size,
                           SSL* ssl, void* filter);
  Status check_key_updates() const;
  Status shake_hands();
  Status look_ahead();
  Error trouble(int result);
  bool is_foreign() const;
  std::string why_not_trusted() const;

  std::string names_, expires_;  // fields of an untrusted certificate

  const End end_;
  std::vector<std::byte> in_, out_;
  std::size_t in_at_ = 0, out_at_ = 0;           // bytes of in_ that were read, bytes of out_ that were sent
  std::uint64_t arrived_ = 0, key_updates_ = 0;  // from the peer: bytes and key updates
  std::byte next_{};                             // the next byte for read(), if has_byte_
  bool has_byte_ = false, ready_ = false;
  SslPtr ssl_;  // destroyed first: it may still write
};

}  // namespace gradwire
