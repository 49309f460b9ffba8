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

}  // namespace gradwire
