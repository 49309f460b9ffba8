#include "benchmarks/load_server.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "fl_server/net/filtered_sockets.h"
#include "fl_server/net/tcp_sockets.h"
#include "proto/security/certificates.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"

namespace gradwire::bench {
namespace {

constexpr std::chrono::minutes kTimeToJoin{2};
constexpr double kTimeToAnswer = 30;  // seconds

// The number of clients that connect at a time. It is small enough for TLS: a handshake takes half a
// millisecond at each end, and the server allows each client five seconds.
constexpr std::uint32_t kMostOpening = 256;

}  // namespace

CodecContext Load::context() const {
  CodecContext c;
  c.dim = dim;
  c.clients = clients;
  c.compressor = Identity{};
  c.zstd.kind = ZstdMode::Kind::kOff;
  return c;
}

LoadOptions Load::clients_of(const std::string& server) const {
  LoadOptions options;
  options.server = server;
  options.good = clients;
  options.dim = dim;
  options.reply = reply;
  options.most_opening = kMostOpening;
  if (!certificates.empty()) options.ca_pin = fingerprint_of(certificates / "ca.pem");
  return options;
}

std::uint32_t clients_up_to(std::uint32_t wanted, std::uint32_t times) {
  return std::min(wanted, most_load_sockets() / times);
}

Certificates::Certificates() {
  make_authority(folder());
  make_server_certificate(folder(), folder(), {"127.0.0.1"}, std::chrono::hours(24));
}

LoadServer::LoadServer(const Load& load) : load_(load) {
  auto sockets = listen_on_tcp("127.0.0.1:0");
  if (!load.certificates.empty()) {
    tls_ = std::make_shared<TlsServer>(load.certificates / "server.pem", load.certificates / "server.key");
    sockets = filtered(std::move(sockets), {[tls = tls_] { return tls->accept(); }, {}, {}});
  }
  SessionManagerOptions options;
  options.clients = load.clients;
  session_manager_ = std::make_unique<SessionManager>(options, std::move(sockets));
}
LoadServer::~LoadServer() = default;

void LoadServer::begin() {
  clients_ = std::make_unique<LoadProcess>(load_.clients_of(session_manager_->address()));
  session_manager_->gather(kTimeToJoin);
  wire::Start start;
  start.set_dim(load_.dim);
  transport_ = std::make_unique<TcpTransport<float>>(*session_manager_, load_.context(),
                                                     control_frame(FrameType::kStart, start));
}

void LoadServer::round() {
  Downlink<float> body;
  body.parts = {Payload<float>::nothing(load_.dim)};
  Request<float> request;
  request.request_id = ++request_id_;
  request.body = &body;
  for (ClientId client = 0; client < load_.clients; ++client) transport_->send(client, request);
  for (std::uint32_t got = 0; got < load_.clients;) {
    const auto& event = transport_->next(transport_->now() + kTimeToAnswer);
    if (event.kind == Event<float>::Kind::kTimeout)
      throw std::runtime_error("a client does not answer in time");
    if (event.kind == Event<float>::Kind::kLeft) throw std::runtime_error("a client disconnected");
    got += event.kind == Event<float>::Kind::kReply ? 1 : 0;
  }
}

}  // namespace gradwire::bench
