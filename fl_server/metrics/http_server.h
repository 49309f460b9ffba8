// An HTTP server on a thread of its own. Requests never wait for the run, and the run never waits for
// requests. Untrusted peers may connect, so their number, time and memory are limited.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace gradwire {

struct HttpPage {
  std::string type;  // Content-Type
  std::string body;
};

class HttpServer {
 public:
  // The functions that make pages, by path, as in "/metrics". They are called on the server's thread.
  using Makers = std::map<std::string, std::function<HttpPage()>>;

  virtual ~HttpServer() = default;          // after this no maker is called
  virtual std::string address() const = 0;  // HOST:PORT as bound
  // Disconnects peers that take too long. Must be called periodically, by any thread.
  virtual void check_time() = 0;
};

// Returns true if this build has an HTTP server.
bool can_serve_http();

struct HttpLimits {
  unsigned connections = 64;                     // further ones wait
  std::size_t head_bytes = 16 << 10;             // limit of a request header
  std::chrono::seconds silence{5};               // a peer that is silent for longer is disconnected
  std::chrono::milliseconds connection{10'000};  // from accept to the end of the response
};

// Serves HTTP at `where` (HOST:PORT); port 0 picks a free port. On a loopback address it refuses requests for
// other host names, because they come from web pages in a local browser (DNS rebinding). Throws
// std::invalid_argument (invalid address, or not in this build) or std::runtime_error (cannot listen), one
// line.
std::unique_ptr<HttpServer> serve_http(const std::string& where, HttpServer::Makers makers,
                                       const HttpLimits& limits = {});

}  // namespace gradwire
