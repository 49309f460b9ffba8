// Network addresses as users write them.
#pragma once

#include <memory>
#include <netdb.h>
#include <string>

#include "base/result.h"

namespace gradwire {

struct Address {
  std::string host;  // without the brackets of [V6]; empty means all interfaces
  std::string port;  // digits, at most 65535
};

enum class AddressUse { kToConnect, kToListen };

// Parses HOST:PORT or [V6]:PORT, and also :PORT if `use` is kToListen. The error begins with `text` and gives
// the correct format.
Result<Address> parse_address(const std::string& text, AddressUse use);

// Returns whether the host is `localhost` or a numeric loopback address, so that the data crosses no network.
// A name that only looks like such an address may belong to another machine.
bool is_loopback(const Address& address);

// Returns whether a host is numeric, IPv4 or IPv6.
bool is_numeric(const std::string& host);

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// Resolves an address to one or more socket addresses. Waits for the system's resolver, and returns its error
// if it fails.
Result<AddressList> look_up(const Address& address, AddressUse use);

}  // namespace gradwire
