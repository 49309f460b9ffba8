#include "parallel/shared_threads.h"

#include <memory>
#include <optional>

#include "parallel/thread_pool.h"

namespace gradwire {

WorkSharing shared_threads(unsigned threads) {
  if (threads <= 1) return {};
  const auto pool = std::make_shared<std::optional<ThreadPool>>();
  return {threads, [pool, threads](std::size_t items, const std::function<void(std::size_t)>& body) {
            if (!pool->has_value()) pool->emplace(threads);
            (*pool)->for_each(items, [&](unsigned, std::size_t item) { body(item); });
          }};
}

}  // namespace gradwire
