// Addresses as users write them.
#pragma once

#include <memory>
#include <netdb.h>
#include <string>

#include "base/result.h"

namespace gradwire {

struct Address {
  std::string host;  // without the brackets of [V6]; empty: all interfaces
  std::string port;  // digits, at most 65535
};

enum class AddressUse { kToConnect, kToListen };

// HOST:PORT, [V6]:PORT, or to listen :PORT. The error begins with `text` and says how to write it.
Result<Address> parse_address(const std::string& text, AddressUse use);

// Whether HOST:PORT is this machine by its number, or `localhost`: what is sent there is on no network. Names
// that only look like such a number are others' machines.
bool is_loopback(const Address& address);

// Whether a host is written as numbers, IPv4 or IPv6.
bool is_numeric(const std::string& host);

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// The socket addresses that the system's resolver finds, never empty: to connect to, or to listen on. Waits
// for the resolver. The error is the resolver's.
Result<AddressList> look_up(const Address& address, AddressUse use);

}  // namespace gradwire
