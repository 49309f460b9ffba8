// A TCP relay on loopback that loses or resets connections on request: a bad network for real programs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/support/fake_client.h"
#include "tests/support/test_seed.h"

namespace gradwire {

class Relay {
 public:
  // Cuts a connection after every `cut_after` bytes in total, in either direction. 0 means never.
  Relay(std::string target, std::uint64_t cut_after) : target_(std::move(target)), cut_after_(cut_after) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    stop_ = true;
    thread_.join();
    for (const auto& [a, b] : pairs_) drop(a, b);
    ::close(listener_);
  }

  const std::string& address() const { return address_; }
  int cuts() const { return cuts_; }
  // Soon resets (RST) each connection with this probability.
  void reset(double probability) { reset_ = probability; }
  int resets() const { return resets_; }

 private:
  static void drop_hard(int a, int b) {
    const linger at_once{1, 0};
    ::setsockopt(a, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::setsockopt(b, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    drop(a, b);
  }

  void reset_some() {
    const double probability = reset_.exchange(0);
    if (probability == 0) return;
    std::erase_if(pairs_, [&](const auto& pair) {
      if (!std::bernoulli_distribution(probability)(random_)) return false;
      drop_hard(pair.first, pair.second);
      resets_ += 1;
      return true;
    });
  }

  static void drop(int a, int b) {
    ::close(a);
    ::close(b);
  }

  void run() {
    while (!stop_) {
      reset_some();
      std::vector<pollfd> ready = {{listener_, POLLIN, 0}};
      for (const auto& [a, b] : pairs_) {
        ready.push_back({a, POLLIN, 0});
        ready.push_back({b, POLLIN, 0});
      }
      if (::poll(ready.data(), ready.size(), 20) <= 0) continue;
      std::vector<std::pair<int, int>> kept;
      for (std::size_t k = 0; k < pairs_.size(); ++k) {
        const auto [a, b] = pairs_[k];
        const bool alive = (ready[1 + 2 * k].revents == 0 || forward(a, b)) &&
                           (ready[2 + 2 * k].revents == 0 || forward(b, a));
        if (alive) {
          kept.push_back(pairs_[k]);
        } else {
          drop(a, b);
        }
      }
      pairs_ = kept;
      if (ready[0].revents != 0)
        // A program started later must not inherit, and so hold open, a connection that the relay cuts.
        pairs_.emplace_back(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), connect_to(target_));
    }
  }

  // Returns false if the connection ends.
  bool forward(int from, int to) {
    std::array<char, 4096> buffer;
    const ssize_t n = ::recv(from, buffer.data(), buffer.size(), 0);
    if (n <= 0) return false;
    passed_ += static_cast<std::uint64_t>(n);
    std::size_t size = static_cast<std::size_t>(n);
    const bool cut = cut_after_ > 0 && passed_ >= cut_after_;
    if (cut) {
      passed_ = 0;
      cuts_ += 1;
      size /= 2;  // in the middle of a message
    }
    ::send(to, buffer.data(), size, MSG_NOSIGNAL);
    return !cut;
  }

  const std::string target_;
  const std::uint64_t cut_after_;
  std::uint64_t passed_ = 0;
  std::atomic<int> cuts_ = 0, resets_ = 0;
  std::atomic<double> reset_ = 0;
  std::mt19937 random_{test_seed()};
  std::atomic<bool> stop_ = false;
  int listener_ = -1;
  std::string address_;
  std::vector<std::pair<int, int>> pairs_;
  std::thread thread_;
};

}  // namespace gradwire
