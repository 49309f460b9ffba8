// Opens the socket to a server. Both functions end early once `stop` is requested.
#pragma once

#include <chrono>
#include <stop_token>

#include "base/result.h"
#include "proto/wire/address.h"

namespace gradwire {

inline constexpr const char* kClientStopped = "the client was stopped";

// Resolves the name. If this may be stopped, another thread waits for the system's resolver, which may take
// minutes and cannot be interrupted.
Result<AddressList> look_up_until(const std::stop_token& stop, const Address& address);

// Returns a connected, blocking socket, or -1 with `error` set.
int open_socket(const addrinfo& where, std::chrono::milliseconds timeout, const std::stop_token& stop,
                int& error);

}  // namespace gradwire
