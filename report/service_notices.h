// Tells a service manager how the program fares: the protocol of sd_notify(3), datagrams to $NOTIFY_SOCKET.
// Without such a manager, all functions do nothing. A notice that cannot be sent is lost.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

namespace gradwire {

class ServiceNotices {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
  ServiceNotices();
  ~ServiceNotices();
  ServiceNotices(const ServiceNotices&) = delete;
  ServiceNotices& operator=(const ServiceNotices&) = delete;

  void ready();  // the program has started
  void status(std::string_view line);
  // Starts a thread that tells the manager's watchdog that the program is alive, as long as is_alive()
  // returns true. The manager restarts a program that is not. Does nothing if the manager has no watchdog.
  void begin_watch(std::function<bool()> is_alive);

 private:
  void send(std::string_view notice);

  int socket_ = -1;  // connected
  std::chrono::microseconds watchdog_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread watch_;
};

}  // namespace gradwire
