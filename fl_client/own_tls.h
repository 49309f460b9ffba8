// The client's end of TLS. A new or replaced certificate in the client's folder is used from the next
// connection on. So a client that was refused because it had none needs no restart.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "fl_client/client.h"
#include "proto/security/stream_filter.h"
#include "proto/security/tls.h"

namespace gradwire {

class OwnTls {
 public:
  // `settings` must outlive it. Throws BadInput (one line).
  explicit OwnTls(const ClientSettings& settings);

  // Loads the certificate again if it changed. REQUIRES: no filter that connect() made still exists.
  void look_for_certificate();
  std::unique_ptr<StreamFilter> connect(const std::string& host) { return tls_->connect(host); }

 private:
  using Time = std::filesystem::file_time_type;

  std::pair<Time, Time> times() const;
  std::unique_ptr<TlsClient> load() const;

  const ClientSettings& settings_;
  std::pair<Time, Time> changed_;
  std::unique_ptr<TlsClient> tls_;
};

}  // namespace gradwire
