// In place of pages.cpp where libmicrohttpd is not there.
#include <stdexcept>

#include "fl_server/watch/pages.h"

namespace gradwire {

bool can_serve_pages() { return false; }

std::unique_ptr<Pages> serve_pages(const std::string&, Pages::Makers, const PageLimits&) {
  throw std::invalid_argument(
      "--metrics: this gradwire-server was built without libmicrohttpd; install it (Debian and Ubuntu: "
      "libmicrohttpd-dev), configure and build again");
}

}  // namespace gradwire
