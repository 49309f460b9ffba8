// Pages for browsers and monitors, over HTTP, from a thread of its own: what they ask never waits for the
// run, nor the run for them. Strangers may send what they like: connections, their time and their memory are
// limited.
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
  // By path, "/metrics". The functions are called from the thread of the pages, as the pages are asked for.
  using Makers = std::map<std::string, std::function<HttpPage()>>;

  virtual ~HttpServer() = default;          // after it no maker is called
  virtual std::string address() const = 0;  // HOST:PORT as bound
  // To be called from time to time, by any thread: disconnects peers that take too long.
  virtual void check_time() = 0;
};

// Whether this build can serve pages.
bool can_serve_http();

struct HttpLimits {
  unsigned connections = 64;                     // beyond that others wait
  std::size_t head_bytes = 16 << 10;             // of a request
  std::chrono::seconds silence{5};               // of a peer
  std::chrono::milliseconds connection{10'000};  // from accept to the end of the answer
};

// `where`: HOST:PORT, port 0: any that is free. Bound to this machine alone, it refuses requests for other
// host names: those come from a web page that makes a browser here ask for it. Throws in one line:
// std::invalid_argument (no address, or not in this build), std::runtime_error (cannot listen).
std::unique_ptr<HttpServer> serve_http(const std::string& where, HttpServer::Makers makers,
                                       const HttpLimits& limits = {});

}  // namespace gradwire
