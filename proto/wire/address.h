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

// Parses HOST:PORT, [V6]:PORT, or to listen :PORT. The error begins with `text` and says how to write an
// address.
Result<Address> parse_address(const std::string& text, AddressUse use);

// Returns whether HOST:PORT is this machine by its number, or `localhost`, so that the data crosses no
// network. Names that only look like such a number may be other machines.
bool is_loopback(const Address& address);

// Returns whether a host is numeric, IPv4 or IPv6.
bool is_numeric(const std::string& host);

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// Returns the socket addresses of the system's resolver, at least one, to connect to or to listen on. Waits
// for the resolver, and returns its error.
Result<AddressList> look_up(const Address& address, AddressUse use);

}  // namespace gradwire
