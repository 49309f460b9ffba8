#pragma once

#include <chrono>
#include <thread>

namespace gradwire {

// Waits until done() returns true. Returns false after 30 s.
template <class Done>
bool eventually(const Done& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace gradwire
