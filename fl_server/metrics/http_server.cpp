#include "fl_server/metrics/http_server.h"

#include <chrono>
#include <exception>
#include <map>
#include <microhttpd.h>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "fl_server/net/listener.h"
#include "proto/wire/address.h"

namespace gradwire {
namespace {

using Clock = std::chrono::steady_clock;

// Returns the name in `Host: NAME:PORT` or `Host: [V6]:PORT`.
std::string_view host_name(std::string_view host) {
  if (!host.starts_with('[')) return host.substr(0, host.rfind(':'));
  host.remove_prefix(1);
  return host.substr(0, host.find(']'));
}

class MhdServer final : public HttpServer {
 public:
  MhdServer(const std::string& where, Makers makers, const HttpLimits& limits)
      : limits_(limits),
        makers_(std::move(makers)),
        listener_(where, "--metrics"),
        address_(listener_.address()) {
    const auto bound = parse_address(address_, AddressUse::kToListen);
    is_local_ = bound && is_loopback(*bound);
    const int fd = ::dup(listener_.fd());  // the daemon closes it
    if (fd >= 0)
      daemon_ = MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD, 0, nullptr, nullptr, &answer, this,
                                 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                                 limits.connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits.head_bytes,
                                 MHD_OPTION_CONNECTION_TIMEOUT, static_cast<unsigned>(limits.silence.count()),
                                 MHD_OPTION_NOTIFY_CONNECTION, &note_connection, this, MHD_OPTION_END);
    if (daemon_ != nullptr) return;
    if (fd >= 0) ::close(fd);
    throw std::runtime_error("--metrics " + where + ": the system has no free thread or file descriptor");
  }
  ~MhdServer() override { MHD_stop_daemon(daemon_); }

  std::string address() const override { return address_; }

  // Disconnects peers by the age of their connections. A peer that sends a byte now and then is never silent,
  // but must not hold a connection forever.
  void check_time() override {
    const std::scoped_lock lock(mutex_);
    const auto now = Clock::now();
    for (const auto& [connection, peer] : peers_)
      if (now - peer.since > limits_.connection) ::shutdown(peer.fd, SHUT_RDWR);
  }

 private:
  struct HttpPeer {
    int fd;
    Clock::time_point since;
  };

  // Keeps peers_ up to date, so that the sockets of all connections in it are open.
  static void note_connection(void* self, MHD_Connection* connection, void**,
                              MHD_ConnectionNotificationCode code) {
    auto& pages = *static_cast<MhdServer*>(self);
    const std::scoped_lock lock(pages.mutex_);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      pages.peers_.erase(connection);
    } else if (const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)) {
      try {
        pages.peers_[connection] = {info->connect_fd, Clock::now()};
      } catch (const std::exception&) {  // no memory: disconnect it at once
        ::shutdown(info->connect_fd, SHUT_RDWR);
      }
    }
  }

  static MHD_Result answer(void* self, MHD_Connection* connection, const char* path, const char* method,
                           const char*, const char*, std::size_t*, void**) {
    try {
      return static_cast<MhdServer*>(self)->answer(connection, path, method);
    } catch (const std::exception&) {  // no memory: the connection is closed
      return MHD_NO;
    }
  }

  MHD_Result answer(MHD_Connection* connection, const std::string& path, std::string_view method) const {
    const char* const host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    if (is_local_ && host != nullptr && !is_loopback({std::string(host_name(host)), ""}))
      return reply(connection, MHD_HTTP_MISDIRECTED_REQUEST,
                   text("this server answers only requests for 127.0.0.1 or localhost"));
    if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD)
      return reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, text("only GET and HEAD are supported"));
    const auto maker = makers_.find(path);
    if (maker != makers_.end()) return reply(connection, MHD_HTTP_OK, maker->second());
    std::string paths;
    for (const auto& [known, ignored] : makers_) paths += (paths.empty() ? "" : " ") + known;
    return reply(connection, MHD_HTTP_NOT_FOUND, text("no such page; available: " + paths));
  }

  static HttpPage text(const std::string& line) { return {"text/plain; charset=utf-8", line + "\n"}; }

  static MHD_Result reply(MHD_Connection* connection, unsigned status, HttpPage page) {
    MHD_Response* const response =
        MHD_create_response_from_buffer(page.body.size(), page.body.data(), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page.type.c_str());
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
      MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    const MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
  }

  const HttpLimits limits_;
  const Makers makers_;
  Listener listener_;
  const std::string address_;
  bool is_local_ = false;
  MHD_Daemon* daemon_ = nullptr;
  std::mutex mutex_;
  std::map<MHD_Connection*, HttpPeer> peers_;
};

}  // namespace

bool can_serve_http() { return true; }

std::unique_ptr<HttpServer> serve_http(const std::string& where, HttpServer::Makers makers,
                                       const HttpLimits& limits) {
  return std::make_unique<MhdServer>(where, std::move(makers), limits);
}

}  // namespace gradwire
