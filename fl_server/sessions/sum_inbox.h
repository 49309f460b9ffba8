// An inbox for the sums of replies that relays send. It keeps each sum while the loop uses it.
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

  // Prepares for the next sum of this relay, as UplinkSlot::prepare_sum does. A relay sends one sum at a
  // time.
  Result<std::span<const std::span<std::byte>>> prepare(std::uint64_t relay, const Prefix& prefix,
                                                        std::span<const std::byte> header) {
    forget(relay);
    std::unique_ptr<Slot>& slot = arriving_[relay] = take_spare();
    auto places = slot->prepare_sum(prefix, header);
    if (!places) forget(relay);
    return places;
  }
  bool is_arriving(std::uint64_t relay) const { return arriving_.contains(relay); }
  // Returns the clients whose replies are in the arriving sum.
  std::span<const ClientId> covers(std::uint64_t relay) const { return arriving_.at(relay)->covers(); }
  std::uint64_t request_id(std::uint64_t relay) const { return arriving_.at(relay)->request_id(); }

  struct Sum {
    UplinkView<Real> up;
    std::span<const ClientId> covers;
  };
  // Completes the arriving sum. Its views stay valid until release() of a request later than `newest`.
  // REQUIRES: is_arriving().
  Result<Sum> finish(std::uint64_t relay, std::uint64_t newest) {
    const auto found = arriving_.find(relay);
    std::unique_ptr<Slot> slot = std::move(found->second);
    arriving_.erase(found);
    const std::span<const ClientId> covers = slot->covers();
    const Result<UplinkView<Real>> up = slot->finish(covers.front());
    if (!up) return up.error();
    viewed_.emplace_back(newest, std::move(slot));
    return Sum{*up, covers};
  }

  // Discards the arriving sum of a relay, because it is unwanted or the relay left.
  void forget(std::uint64_t relay) {
    const auto found = arriving_.find(relay);
    if (found == arriving_.end()) return;
    keep(std::move(found->second));
    arriving_.erase(found);
  }
  // Releases the sums of requests before `newest`; the loop no longer uses them.
  void release(std::uint64_t newest) {
    const auto old = std::stable_partition(viewed_.begin(), viewed_.end(),
                                           [&](const auto& sum) { return sum.first >= newest; });
    for (auto sum = old; sum != viewed_.end(); ++sum) keep(std::move(sum->second));
    viewed_.erase(old, viewed_.end());
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
  std::map<std::uint64_t, std::unique_ptr<Slot>> arriving_;  // by relay
  // The finished sums that the loop may still view, each with `newest` of finish().
  std::vector<std::pair<std::uint64_t, std::unique_ptr<Slot>>> viewed_;
  std::vector<std::unique_ptr<Slot>> spare_;
};

}  // namespace gradwire
