// FNV-1a, a hash of names and settings. It is the same on every machine. It does not protect against an
// attacker.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace gradwire {

class Fnv1a {
 public:
  constexpr void add(std::string_view bytes) {
    for (const char c : bytes) value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  constexpr std::uint64_t value() const { return value_; }
  // Returns the hash as sixteen hexadecimal digits.
  std::string text() const {
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(value_));
    return digits.data();
  }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace gradwire
