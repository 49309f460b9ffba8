// Link of a given speed in front of a server on this machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace gradwire::bench {

// A proxy that forwards each client's bytes at a given rate, and the server's bytes without delay.
class SlowLink {
 public:
  // `server` is 127.0.0.1:PORT. Throws std::runtime_error if it cannot listen.
  SlowLink(const std::string& server, double bytes_per_second);
  ~SlowLink();
  SlowLink(const SlowLink&) = delete;
  SlowLink& operator=(const SlowLink&) = delete;

  const std::string& address() const { return address_; }

 private:
  void accept_all();
  void pass(int from, int to, double bytes_per_second) const;

  const std::uint16_t server_port_;
  const double bytes_per_second_;
  int listener_ = -1;
  std::string address_;
  std::atomic<bool> stop_ = false;
  std::vector<int> sockets_;  // sockets of all connections so far
  std::vector<std::thread> passing_;
  std::thread accepting_;
};

}  // namespace gradwire::bench
