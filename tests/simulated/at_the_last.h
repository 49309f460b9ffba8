#pragma once

#include <functional>
#include <utility>

#include "storage/run_store.h"

namespace gradwire {

// Runs work at the last allowed moment. Work that has not begun is lost with its process.
class AtTheLast final : public Background {
 public:
  void start(std::function<void()> look, std::function<void()> write) override {
    look_ = std::move(look);
    write_ = std::move(write);
  }
  void wait_looked() override {
    if (!look_) return;
    std::exchange(look_, nullptr)();
    std::exchange(write_, nullptr)();
  }
  bool busy() const override { return look_ != nullptr; }
  void wait() override { look_ = write_ = nullptr; }

 private:
  std::function<void()> look_, write_;
};

}  // namespace gradwire
