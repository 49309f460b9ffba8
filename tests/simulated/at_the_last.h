#pragma once

#include <functional>
#include <utility>

#include "proto/store/run_store.h"

namespace gradwire {

// Copies and writes at the last moment that is allowed; work that it has not begun is lost with its process.
class AtTheLast final : public Background {
 public:
  void start(std::function<void()> copy, std::function<void()> write) override {
    copy_ = std::move(copy);
    write_ = std::move(write);
  }
  void wait_copied() override {
    if (!copy_) return;
    std::exchange(copy_, nullptr)();
    std::exchange(write_, nullptr)();
  }
  bool busy() const override { return copy_ != nullptr; }
  void wait() override { copy_ = write_ = nullptr; }

 private:
  std::function<void()> copy_, write_;
};

}  // namespace gradwire
