// A replacement of http_server.cpp for builds without libmicrohttpd.
#include <stdexcept>

#include "fl_server/metrics/http_server.h"

namespace gradwire {

bool can_serve_http() { return false; }

std::unique_ptr<HttpServer> serve_http(const std::string&, HttpServer::Makers, const HttpLimits&) {
  throw std::invalid_argument(
      "--metrics: this gradwire-server was built without libmicrohttpd; install it (Debian and Ubuntu: "
      "libmicrohttpd-dev), configure and build again");
}

}  // namespace gradwire
