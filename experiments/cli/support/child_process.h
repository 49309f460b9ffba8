#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gradwire {

// A program in a process of its own; Ctrl-C in the terminal does not reach it. The program ends at the latest
// when this object is destroyed, or when this process ends, for whatever reason.
class ChildProcess {
 public:
  // `role` is for messages ("client 3"). What the program prints goes to the file `log`. Throws
  // std::runtime_error when it cannot be started. The calling thread must outlive the object.
  ChildProcess(std::string role, const std::filesystem::path& program,
               const std::vector<std::string>& arguments, std::filesystem::path log);
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  const std::string& role() const { return role_; }
  pid_t pid() const { return pid_; }
  // The running program as the operating system names it.
  const std::string& executable() const { return executable_; }

  // The exit code (128 + the number of a signal) once it has ended. Does not wait.
  std::optional<int> ended();
  void signal(int number);
  // The most memory that it has had at a time (VmHWM); 0 once it has ended. Not ru_maxrss: that also counts
  // what this process had when it started the program.
  std::uint64_t peak_bytes() const;
  // The last line that it printed; empty: none.
  std::string last_line() const;

 private:
  std::string role_;
  std::filesystem::path log_;
  std::string executable_;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

}  // namespace gradwire
