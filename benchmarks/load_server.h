// A server's session manager and transport in this process, with its clients in another process.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "benchmarks/load_clients.h"
#include "experiments/cli/support/scratch_folder.h"
#include "fl_server/sessions/tcp_transport.h"
#include "proto/security/tls.h"

namespace gradwire::bench {

// The clients of one measurement: their number, and the form of their replies.
struct Load {
  std::uint32_t clients = 0;
  std::uint32_t dim = 0;
  LoadOptions::ReplyKind reply = LoadOptions::ReplyKind::kFloats;
  std::filesystem::path certificates{};  // folder of Certificates for TLS; empty for plain text

  CodecContext context() const;
  LoadOptions clients_of(const std::string& server) const;
};

// Returns `wanted`, or fewer if the system allows one process too few sockets to serve `times` as many
// clients.
std::uint32_t clients_up_to(std::uint32_t wanted, std::uint32_t times = 1);

// A CA, and a certificate of a server on loopback.
class Certificates {
 public:
  Certificates();
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  ScratchFolder folder_;
};

class LoadServer {
 public:
  explicit LoadServer(const Load& load);
  ~LoadServer();

  // Starts the clients, and waits until all have joined and the run has begun. Throws std::runtime_error.
  void begin();
  // Asks every client, and waits until all have answered.
  void round();

 private:
  const Load load_;
  std::shared_ptr<TlsServer> tls_;
  std::unique_ptr<SessionManager> session_manager_;
  std::unique_ptr<LoadProcess> clients_;
  std::unique_ptr<TcpTransport<float>> transport_;
  std::uint64_t request_id_ = 0;
};

}  // namespace gradwire::bench
