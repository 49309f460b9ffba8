// A stream filter whose handshake is scripted.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "proto/security/stream_filter.h"

namespace gradwire {

// A filter that forwards bytes unchanged after its handshake. The handshake ends with the first feed() for
// which `on_feed` returns no error.
class ScriptedFilter final : public StreamFilter {
 public:
  using OnFeed = std::function<Status(std::span<const std::byte>)>;  // called on the thread that feeds it
  // `alive` counts the existing filters.
  ScriptedFilter(OnFeed on_feed, std::atomic<int>& alive) : on_feed_(std::move(on_feed)), alive_(alive) {
    ++alive_;
  }
  ~ScriptedFilter() override { --alive_; }

  Status feed(std::span<const std::byte> arrived) override {
    if (!ready_)
      if (Status status = on_feed_(arrived); !status) return status;
    ready_ = true;
    in_.insert(in_.end(), arrived.begin(), arrived.end());
    return Unit{};
  }
  Result<std::size_t> read(std::span<std::byte> to) override {
    const std::size_t count = std::min(to.size(), in_.size());
    std::copy_n(in_.begin(), count, to.begin());
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  bool has_plain() const override { return !in_.empty(); }
  Status write(std::span<const std::byte> plain) override {
    out_.insert(out_.end(), plain.begin(), plain.end());
    return Unit{};
  }
  void end() override {}
  std::span<const std::byte> outgoing() const override { return out_; }
  void sent(std::size_t bytes) override {
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(bytes));
  }
  bool ready() const override { return ready_; }

 private:
  const OnFeed on_feed_;
  std::atomic<int>& alive_;
  bool ready_ = false;
  std::vector<std::byte> in_, out_;
};

}  // namespace gradwire
