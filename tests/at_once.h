#pragma once

#include "fl_server/durable_run.h"

namespace gradwire {

// Works as soon as it is told, and so dies with its process.
class AtOnce final : public Background {
 public:
  void start(std::function<void()> job) override { job(); }
  bool busy() const override { return false; }
  void wait() override {}
};

}  // namespace gradwire
