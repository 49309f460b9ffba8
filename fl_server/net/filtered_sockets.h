// Sockets whose bytes pass through a filter (TLS). The sockets below belong to the operating system or to a
// simulation.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "fl_server/net/socket_layer.h"
#include "proto/security/stream_filter.h"

namespace gradwire {

struct Filters {
  // Creates the filter of an accepted connection. If empty, accepted connections have no filter.
  std::function<std::unique_ptr<StreamFilter>()> accept;
  // Creates the filter of a connection to this host. If empty, such connections have no filter.
  std::function<std::unique_ptr<StreamFilter>(const std::string& host)> connect;
  std::function<void()> on_tick;  // called in each tick; may be empty
  // The largest number of handshakes of accepted connections that may wait for a thread of their own. If 0,
  // handshakes run on the thread of the sockets. REQUIRES: any thread may call post() of the sockets below.
  std::size_t handshakes_apart = 0;
};

std::unique_ptr<SocketLayer> filtered(std::unique_ptr<SocketLayer> sockets, Filters filters);

}  // namespace gradwire
