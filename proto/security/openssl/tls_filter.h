// One end of one TLS connection as a filter of bytes. Only for .cpp files of this folder.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>

#include "proto/security/byte_queue.h"
#include "proto/security/openssl/openssl.h"
#include "proto/security/stream_filter.h"
#include "proto/security/tls_trouble.h"

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
  std::span<const std::byte> outgoing() const override { return out_.bytes(); }
  void sent(std::size_t bytes) override { out_.drop(bytes); }
  bool ready() const override { return ready_; }
  // Records the peer's certificate that this end does not trust at the time `now`, for the error.
  void note_distrust(const X509* certificate, std::time_t now);

 private:
  static BIO_METHOD* method();
  static void note_message(int is_written, int version, int type, const void* bytes, std::size_t size,
                           SSL* ssl, void* filter);
  Status check_key_updates() const;
  Status shake_hands();
  Status look_ahead();
  Error trouble(int result);
  std::optional<Error> why_not_trusted() const;

  SeenCertificate seen_;  // the untrusted certificate
  std::time_t seen_at_ = 0;

  const End end_;
  static constexpr std::size_t kMostKept = 4096;  // a server has many idle connections
  ByteQueue in_{kMostKept}, out_{kMostKept};
  std::uint64_t arrived_ = 0, key_updates_ = 0;  // from the peer: bytes and key updates
  std::byte next_{};                             // the next byte for read(), if has_byte_
  bool has_byte_ = false, ready_ = false;
  SslPtr ssl_;  // destroyed first: it may still write
};

}  // namespace gradwire
