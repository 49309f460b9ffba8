// Many clients of the real library as threads of one process. A test can kill the process, so that all of
// them leave without a shutdown.
#pragma once

#include <csignal>
#include <cstdint>
#include <exception>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "fl_client/client.h"

namespace gradwire {

class ClientGroup {
 public:
  // Starts the clients c<first>, ... for a problem without data. REQUIRES: this process has one thread.
  ClientGroup(const std::string& server, std::uint32_t first, std::uint32_t count) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<std::thread> threads;
    for (std::uint32_t c = first; c < first + count; ++c)
      threads.emplace_back([&server, c] { run_one(server, "c" + std::to_string(c)); });
    for (std::thread& thread : threads) thread.join();
    ::_exit(0);
  }
  ~ClientGroup() { kill(); }
  ClientGroup(ClientGroup&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ClientGroup& operator=(ClientGroup&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }

  // Sends SIGKILL, so the clients do not shut down.
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Returns whether the server rejected a client of this group, or a client could not continue.
  bool has_failed() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }

 private:
  static void run_one(const std::string& server, const std::string& name) {
    ClientSettings options;
    options.server = server;
    options.name = name;
    try {
      join_and_answer(options);
    } catch (const std::exception& error) {
      const std::string line = name + ": " + error.what() + "\n";
      (void)!::write(2, line.data(), line.size());
      ::_exit(1);
    }
  }

  pid_t pid_;
};

}  // namespace gradwire
