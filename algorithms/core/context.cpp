#include "algorithms/core/context.h"

#include <algorithm>

namespace gradwire {

void for_ranges_serial(std::size_t size, const std::function<void(std::size_t, std::size_t)>& body) {
  for (std::size_t lo = 0; lo < size; lo += kRangeReals) body(lo, std::min(size, lo + kRangeReals));
}

}  // namespace gradwire
