// Integers in files, lowest byte first, as on the wire.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gradwire {

template <class T>
void put(std::string& to, T value) {
  for (std::size_t k = 0; k < sizeof value; ++k) to += static_cast<char>(value >> (8 * k));
}

// REQUIRES: at + sizeof(T) <= from.size().
template <class T>
T get(std::string_view from, std::size_t at) {
  T value = 0;
  for (std::size_t k = 0; k < sizeof value; ++k)
    value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(from[at + k])) << (8 * k));
  return value;
}

}  // namespace gradwire
