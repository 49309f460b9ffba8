// Sockets whose bytes pass through a filter (TLS), on any sockets below: the system's or simulated ones.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fl_server/net/socket_layer.h"
#include "proto/secure/stream_filter.h"

namespace gradwire {

struct Filters {
  // Of a connection that was accepted; empty: those are as they come.
  std::function<std::unique_ptr<StreamFilter>()> accept;
  // Of one to this host; empty: the same.
  std::function<std::unique_ptr<StreamFilter>(const std::string& host)> connect;
  std::function<void()> on_tick;  // with the clock; may be empty
};

std::unique_ptr<SocketLayer> filtered(std::unique_ptr<SocketLayer> sockets, Filters filters);

}  // namespace gradwire
