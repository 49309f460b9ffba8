// Structures of callers, which may be older or newer than this library: they have a length of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "gradwire/bad_input.h"

namespace gradwire {

// Returns a copy. Members that the caller does not know are 0. `least` is the number of bytes that the first
// library needed. Throws BadInput if the structure is null or too short, or if it sets members that this
// library does not know.
template <class Struct>
Struct copy_of(const Struct* from, std::size_t least, const std::string& name) {
  if (from == nullptr) throw BadInput(name + " is NULL");
  const std::uint32_t size = from->struct_size;
  if (size < least)
    throw BadInput(name + ".struct_size is " + std::to_string(size) + "; set it to sizeof(" + name + ")");
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  if (size > sizeof(Struct) &&
      std::any_of(bytes + sizeof(Struct), bytes + size, [](unsigned char b) { return b != 0; }))
    throw BadInput(name + " sets members that this library does not know; install the library of its header");
  Struct copy{};
  std::memcpy(&copy, from, std::min<std::size_t>(size, sizeof copy));
  return copy;
}

// Writes the members that the caller knows. Its struct_size stays. REQUIRES: it has at least that member.
template <class Struct>
void give(const Struct& value, Struct* to) {
  const std::uint32_t size = to->struct_size;
  std::memcpy(to, &value, std::min<std::size_t>(size, sizeof value));
  to->struct_size = size;
}

}  // namespace gradwire
