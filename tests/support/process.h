// A program as a process, with its output in a file. The destructor ends the process.
#pragma once

#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <signal.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/support/eventually.h"
#include "tests/support/run_program.h"

namespace gradwire {

class Process {
 public:
  // Starts a program. Both output streams go to `log`; its folder is the working directory. The child calls
  // `in_child` before the program begins, e.g. to lower its limits.
  Process(const std::string& name, const std::vector<std::string>& arguments, std::filesystem::path log,
          void (*in_child)() = nullptr)
      : log_(std::move(log)) {
    const std::string path = program(name).string(), folder = log_.parent_path().string();
    std::vector<char*> argv = {const_cast<char*>(path.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    if (in_child != nullptr) in_child();
    if (::chdir(folder.c_str()) == 0) ::execv(path.c_str(), argv.data());
    ::_exit(127);
  }
  ~Process() {
    kill(SIGKILL);
    wait();
  }
  Process(Process&& other) noexcept
      : log_(std::move(other.log_)), pid_(std::exchange(other.pid_, -1)), code_(other.code_) {}
  Process& operator=(Process&& other) noexcept {
    std::swap(log_, other.log_);
    std::swap(pid_, other.pid_);
    std::swap(code_, other.code_);
    return *this;
  }

  pid_t pid() const { return pid_; }
  void kill(int signal) const {
    if (pid_ > 0 && !code_) ::kill(pid_, signal);
  }
  // Waits for the end. Returns the exit code, 128 + the number of the signal, or -1 if it still runs after
  // `seconds`.
  int wait(int seconds = 30) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (pid_ > 0 && !code_) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      } else if (std::chrono::steady_clock::now() > end) {
        return -1;
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }
    return code_.value_or(-1);
  }
  bool ended() { return wait(0) != -1; }
  std::string log() const { return read_file(log_); }

 private:
  std::filesystem::path log_;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

}  // namespace gradwire
