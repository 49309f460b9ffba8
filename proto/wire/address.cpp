#include "proto/wire/address.h"

#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstdint>
#include <sys/socket.h>
#include <system_error>

namespace gradwire {

Result<Address> parse_address(const std::string& text, AddressUse use) {
  const Error wrong{text + ": write it as HOST:PORT, as in 127.0.0.1:7000"};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || (colon == 0 && use == AddressUse::kToConnect)) return wrong;
  Address address{text.substr(0, colon), text.substr(colon + 1)};
  std::uint16_t number = 0;  // the resolver would also accept larger ones
  const char* end_of_text = address.port.data() + address.port.size();
  const auto [end, error] = std::from_chars(address.port.data(), end_of_text, number);
  if (error == std::errc::result_out_of_range) return Error{text + ": a port is a number of 0 to 65535"};
  if (error != std::errc() || end != end_of_text) return wrong;
  if (number == 0 && use == AddressUse::kToConnect)
    return Error{text + ": no server is at port 0; its address is in the file 'address' of its --state"};
  address.port = std::to_string(number);  // without leading zeros
  std::string& host = address.host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return address;
}

bool is_loopback(const Address& address) {
  in_addr number{};
  const bool is_v4 = ::inet_pton(AF_INET, address.host.c_str(), &number) == 1;
  return address.host == "localhost" || address.host == "::1" || (is_v4 && address.host.starts_with("127."));
}

bool is_numeric(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

Result<AddressList> look_up(const Address& address, AddressUse use) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (use == AddressUse::kToListen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                                      address.port.c_str(), &hints, &found))
    return Error{::gai_strerror(error)};
  return AddressList(found, &::freeaddrinfo);
}

}  // namespace gradwire
