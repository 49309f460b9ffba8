#pragma once

#include <cstddef>
#include <cstdint>

namespace gradwire {

// A number of coordinates, or a share of d ("1%") until d is known.
struct Count {
  std::uint32_t count = 1;
  double share = 0;  // > 0: `count` is round(share * d), at least 1, once resolved
  bool operator==(const Count&) const = default;
};

// The number of clients of the run; 0 until it is known.
struct Clients {
  std::uint32_t count = 0;
  bool operator==(const Clients&) const = default;
};

}  // namespace gradwire
