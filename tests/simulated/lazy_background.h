#pragma once

#include <functional>
#include <utility>

#include "storage/run_store.h"

namespace gradwire {

// A background that reads and writes at the last allowed moment. Work that has not begun is lost when the
// process dies.
class LazyBackground final : public Background {
 public:
  void start(std::function<void()> read, std::function<void()> write) override {
    read_ = std::move(read);
    write_ = std::move(write);
  }
  void wait_read() override {
    if (!read_) return;
    std::exchange(read_, nullptr)();
    std::exchange(write_, nullptr)();
  }
  bool busy() const override { return read_ != nullptr; }
  void wait() override { read_ = write_ = nullptr; }

 private:
  std::function<void()> read_, write_;
};

}  // namespace gradwire
