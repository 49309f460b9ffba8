// Sockets whose bytes pass through a filter (TLS), on any sockets below: the system's or simulated ones.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "fl_server/net/socket_layer.h"
#include "proto/security/stream_filter.h"

namespace gradwire {

struct Filters {
  // Of a connection that was accepted; empty: those are as they come.
  std::function<std::unique_ptr<StreamFilter>()> accept;
  // Of one to this host; empty: the same.
  std::function<std::unique_ptr<StreamFilter>(const std::string& host)> connect;
  std::function<void()> on_tick;  // with the clock; may be empty
  // Handshakes of accepted connections run on a thread of their own, and so many may wait for it. 0: they run
  // on the thread of the sockets. REQUIRES: any thread may call post() of the sockets below.
  std::size_t handshakes_apart = 0;
};

std::unique_ptr<SocketLayer> filtered(std::unique_ptr<SocketLayer> sockets, Filters filters);

}  // namespace gradwire
