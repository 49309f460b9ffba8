// Replies of clients that several threads ask one by one. They are added along the same tree as the replies
// of a thread that has whole leaves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "algorithms/core/message.h"
#include "algorithms/core/tree_sum.h"
#include "parallel/in_order.h"
#include "simulation/reply_cache.h"

namespace gradwire {

// Copies of dense replies whose turn to be added has not come. Threads share their memory, which is used
// again once a reply is added.
template <class Real>
class WaitingReplies {
 public:
  struct Reply {
    Uplink<Real> up;  // views `values`
    Vec<Real> values;
  };
  std::unique_ptr<Reply> copy(const Uplink<Real>& up) {
    std::unique_ptr<Reply> to = take();
    to->values.clear();
    for (const Payload<Real>& part : up.parts)
      to->values.insert(to->values.end(), part.values.begin(), part.values.end());
    to->up = {up, {}};
    View<Real> rest = to->values;
    for (const Payload<Real>& part : up.parts) {
      to->up.parts.push_back(Payload<Real>::dense(rest.first(part.values.size())));
      rest = rest.subspan(part.values.size());
    }
    return to;
  }
  void give_back(std::unique_ptr<Reply> reply) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(reply));
  }
  // Frees the memory of all spare replies except `count`.
  void keep_spare(std::size_t count) { spare_.resize(std::min(spare_.size(), count)); }

 private:
  std::unique_ptr<Reply> take() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return std::make_unique<Reply>();
    std::unique_ptr<Reply> taken = std::move(spare_.back());
    spare_.pop_back();
    return taken;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Reply>> spare_;
};

// A leaf whose clients reply in any order, on several threads. Keeps the same replies as LeafOfReplies.
template <class Real>
class SharedLeaf {
 public:
  // `replies` gets the kept replies, one for each asked client of the leaf. All are there once keep() has
  // returned for each client.
  void begin(std::span<UplinkView<Real>> replies) {
    replies_ = replies;
    waiting_.resize(replies.size());
    turns_.begin(replies.size());
    leaf_.begin(true);
  }
  // Keeps the reply of the client at `place` of the leaf. A reply that is not usable is left out of the sum.
  void keep(std::size_t place, const Uplink<Real>& up, bool is_usable, Arena& arena,
            WaitingReplies<Real>& waiting) {
    const bool is_dense = is_usable && std::ranges::all_of(up.parts, [](const Payload<Real>& part) {
                            return part.shape == Shape::kDense && part.next == nullptr;
                          });
    if (!is_dense) replies_[place] = keep_reply(up, arena);
    turns_.finish(
        place,
        [&](std::size_t) {
          if (!is_dense) return leaf_.leave_out();
          replies_[place] = leaf_.keep(up, arena);
        },
        [&] { waiting_[place] = is_dense ? waiting.copy(up) : nullptr; },
        [&](std::size_t k) {
          if (waiting_[k] == nullptr) return leaf_.leave_out();
          replies_[k] = leaf_.keep(waiting_[k]->up, arena);
          waiting.give_back(std::move(waiting_[k]));
        });
  }

 private:
  InOrder turns_;
  LeafOfReplies<Real> leaf_;
  std::span<UplinkView<Real>> replies_;
  std::vector<std::unique_ptr<typename WaitingReplies<Real>::Reply>> waiting_;  // by place
};

// The leaves of the asked clients of one round.
template <class Real>
class SharedLeaves {
 public:
  // Finds the leaves of the asked clients. Returns false if there are `limit` of them or more.
  bool find(std::span<const ClientId> asked, std::size_t limit) {
    first_.clear();
    if (asked.size() >= limit * kClientsOfLeaf) return false;
    for (std::size_t k = 0; k < asked.size() && first_.size() < limit; ++k)
      if (k == 0 || leaf_of(asked[k]) != leaf_of(asked[k - 1])) first_.push_back(k);
    return first_.size() < limit;
  }
  // Starts a round. `replies` gets the kept replies, one for each client that find() was given.
  void begin(std::span<UplinkView<Real>> replies) {
    while (leaves_.size() < first_.size()) leaves_.emplace_back();
    for (std::size_t l = 0; l < first_.size(); ++l) {
      const std::size_t end = l + 1 < first_.size() ? first_[l + 1] : replies.size();
      leaves_[l].begin(replies.subspan(first_[l], end - first_[l]));
    }
  }
  // Keeps the reply of asked client k: see SharedLeaf.
  void keep(std::size_t k, const Uplink<Real>& up, bool is_usable, Arena& arena) {
    const auto l = static_cast<std::size_t>(std::ranges::upper_bound(first_, k) - first_.begin()) - 1;
    leaves_[l].keep(k - first_[l], up, is_usable, arena, waiting_);
  }
  // Frees the memory of waiting replies, except for `count` of them.
  void end(std::size_t count) { waiting_.keep_spare(count); }

 private:
  std::vector<std::size_t> first_;  // by leaf, the index of its first asked client
  std::deque<SharedLeaf<Real>> leaves_;
  WaitingReplies<Real> waiting_;
};

}  // namespace gradwire
