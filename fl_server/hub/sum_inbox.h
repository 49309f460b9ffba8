// Where the sums of replies that relays send arrive, and stay while the loop looks at them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "proto/wire/codec.h"

namespace gradwire {

template <class Real>
class SumInbox {
 public:
  explicit SumInbox(const CodecContext& context) : context_(context) {}

  // As UplinkSlot::prepare_sum, for the next sum from this relay; one at a time from each.
  Result<std::span<const std::span<std::byte>>> prepare(std::uint64_t relay, const Prefix& prefix,
                                                        std::span<const std::byte> header) {
    forget(relay);
    std::unique_ptr<Slot>& slot = arriving_[relay] = take_spare();
    auto places = slot->prepare_sum(prefix, header);
    if (!places) forget(relay);
    return places;
  }
  bool is_arriving(std::uint64_t relay) const { return arriving_.contains(relay); }
  // Of the sum that is arriving.
  std::span<const ClientId> covers(std::uint64_t relay) const { return arriving_.at(relay)->covers(); }
  std::uint64_t request_id(std::uint64_t relay) const { return arriving_.at(relay)->request_id(); }

  struct Sum {
    UplinkView<Real> up;
    std::span<const ClientId> covers;
  };
  // The whole sum has arrived; its views live until release() of a later request than `newest`. REQUIRES:
  // is_arriving().
  Result<Sum> finish(std::uint64_t relay, std::uint64_t newest) {
    const auto found = arriving_.find(relay);
    std::unique_ptr<Slot> slot = std::move(found->second);
    arriving_.erase(found);
    const std::span<const ClientId> covers = slot->covers();
    const Result<UplinkView<Real>> up = slot->finish(covers.front());
    if (!up) return up.error();
    looked_at_.emplace_back(newest, std::move(slot));
    return Sum{*up, covers};
  }

  // Discards what is arriving from a relay: it is not wanted, or does not come.
  void forget(std::uint64_t relay) {
    const auto found = arriving_.find(relay);
    if (found == arriving_.end()) return;
    keep(std::move(found->second));
    arriving_.erase(found);
  }
  // The loop no longer looks at the sums of requests before `newest`.
  void release(std::uint64_t newest) {
    const auto old = std::stable_partition(looked_at_.begin(), looked_at_.end(),
                                           [&](const auto& sum) { return sum.first >= newest; });
    for (auto sum = old; sum != looked_at_.end(); ++sum) keep(std::move(sum->second));
    looked_at_.erase(old, looked_at_.end());
  }

 private:
  using Slot = UplinkSlot<Real>;
  static constexpr std::size_t kMostSpare = 64;

  std::unique_ptr<Slot> take_spare() {
    if (spare_.empty()) return std::make_unique<Slot>(context_);
    std::unique_ptr<Slot> slot = std::move(spare_.back());
    spare_.pop_back();
    return slot;
  }
  void keep(std::unique_ptr<Slot> slot) {
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(slot));
  }

  const CodecContext context_;
  std::map<std::uint64_t, std::unique_ptr<Slot>> arriving_;                 // by relay
  std::vector<std::pair<std::uint64_t, std::unique_ptr<Slot>>> looked_at_;  // with the request it came in
  std::vector<std::unique_ptr<Slot>> spare_;
};

}  // namespace gradwire
