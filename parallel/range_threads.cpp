#include "parallel/range_threads.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "algorithms/core/context.h"
#include "parallel/thread_pool.h"

namespace gradwire {
namespace {

// Below this number of ranges, threads cost more than they save.
constexpr std::size_t kRangesWorthThreads = 8;

ForRanges ranges_on(std::shared_ptr<ThreadPool> pool) {
  return
      [pool = std::move(pool)](std::size_t size, const std::function<void(std::size_t, std::size_t)>& body) {
        const std::size_t ranges = (size + kRangeReals - 1) / kRangeReals;
        pool->for_each(ranges, [&](unsigned, std::size_t k) {
          body(k * kRangeReals, std::min(size, (k + 1) * kRangeReals));
        });
      };
}

}  // namespace

ForRanges ranges_of(std::size_t d, unsigned threads) {
  if (threads <= 1 || d < kRangesWorthThreads * kRangeReals) return for_ranges_serial;
  return ranges_on(std::make_shared<ThreadPool>(threads));
}

ForRanges items_of(unsigned threads) {
  if (threads <= 1) return {};
  return [pool = std::make_shared<ThreadPool>(threads)](
             std::size_t size, const std::function<void(std::size_t, std::size_t)>& body) {
    pool->for_each(size, [&](unsigned, std::size_t k) { body(k, k + 1); });
  };
}

}  // namespace gradwire
