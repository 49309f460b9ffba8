// TCP sockets of the operating system as a SocketLayer. It uses one thread, and Asio.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fl_server/net/socket_layer.h"
#include "proto/wire/address.h"

namespace gradwire {

// Returns the addresses to connect to. It may block: it is called on a thread of its own.
using LookUp = std::function<Result<AddressList>(const Address&)>;

struct TcpOptions {
  bool keep_signals = false;  // SIGINT and SIGTERM do not end the process; start() handles them
  // Sends long messages without a copy in the kernel (MSG_ZEROCOPY), if the kernel supports it.
  bool zero_copy = false;
  LookUp look_up = [](const Address& address) { return gradwire::look_up(address, AddressUse::kToConnect); };
};

// Listens on HOST:PORT, [V6]:PORT or :PORT (all interfaces). Port 0 picks a free port. Throws
// std::invalid_argument or std::runtime_error (one line).
std::unique_ptr<SocketLayer> listen_on_tcp(const std::string& address, const TcpOptions& options = {});

}  // namespace gradwire
