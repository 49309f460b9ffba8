#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gradwire {

// A program in a separate process, which Ctrl-C in the terminal does not reach. The program ends at the
// latest when this object is destroyed or this process ends.
class ChildProcess {
 public:
  // Starts the program; its output goes to the file `log`. `role` is for messages ("client 3"). Throws
  // std::runtime_error if it cannot be started. The calling thread must outlive the object.
  ChildProcess(std::string role, const std::filesystem::path& program,
               const std::vector<std::string>& arguments, std::filesystem::path log);
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  const std::string& role() const { return role_; }
  pid_t pid() const { return pid_; }
  // Returns the path of the child's executable, as the operating system reports it.
  const std::string& executable() const { return executable_; }

  // Returns the exit code (128 + the number of a signal), or nullopt if the program still runs. Does not
  // wait.
  std::optional<int> ended();
  void signal(int number);
  // Returns the peak memory of the program (VmHWM), or 0 once it has ended. ru_maxrss would also count the
  // memory of this process when it started the program.
  std::uint64_t peak_bytes() const;
  // Returns the last line that it printed, or "" if it printed nothing.
  std::string last_line() const;

 private:
  std::string role_;
  std::filesystem::path log_;
  std::string executable_;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

}  // namespace gradwire
