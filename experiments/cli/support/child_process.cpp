#include "experiments/cli/support/child_process.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <signal.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "report/logger.h"

namespace gradwire {
namespace {

constexpr std::size_t kLogTail = 4096;  // bytes that are searched for the last line

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::runtime_error(what + ": " + std::strerror(error));
}

// Runs in the child between fork and exec, so it makes only calls that are safe there. Ends the process.
[[noreturn]] void become(const char* program, char* const* argv, int log, int report, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  ::signal(SIGPIPE, SIG_DFL);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  // The signal does not come if the parent ended before the prctl().
  if (getppid() == parent) execv(program, argv);
  const int error = errno;
  if (write(report, &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

}  // namespace

ChildProcess::ChildProcess(std::string role, const std::filesystem::path& program,
                           const std::vector<std::string>& arguments, std::filesystem::path log)
    : role_(std::move(role)), log_(std::move(log)) {
  const std::string path = program.string();
  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int out = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (out < 0) fail(log_.string(), errno);
  int report[2];  // a pipe that exec closes; the child writes the error to it if exec fails
  if (pipe2(report, O_CLOEXEC) != 0) {
    close(out);
    fail("pipe", errno);
  }
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(path.c_str(), argv.data(), out, report[1], parent);
  const int fork_error = errno;
  close(out);
  close(report[1]);
  int error = 0;
  ssize_t got = 0;
  if (pid_ > 0) {
    do got = read(report[0], &error, sizeof error);
    while (got < 0 && errno == EINTR);
  }
  close(report[0]);
  if (pid_ < 0) fail("cannot start " + path, fork_error);
  if (got != 0) {
    waitpid(pid_, nullptr, 0);
    fail("cannot start " + path, error);
  }
  std::error_code ignored;
  executable_ = std::filesystem::read_symlink("/proc/" + std::to_string(pid_) + "/exe", ignored).string();
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : role_(std::move(other.role_)),
      log_(std::move(other.log_)),
      executable_(std::move(other.executable_)),
      pid_(std::exchange(other.pid_, -1)),
      code_(other.code_) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || ended()) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<int> ChildProcess::ended() {
  int status = 0;
  if (!code_ && waitpid(pid_, &status, WNOHANG) == pid_)
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code_;
}

void ChildProcess::signal(int number) {
  if (!ended()) kill(pid_, number);
}

std::uint64_t ChildProcess::peak_bytes() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  std::uint64_t kilobytes = 0;
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> kilobytes) break;
  return kilobytes * 1024;
}

std::string ChildProcess::last_line() const {
  std::ifstream in(log_, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::size_t>(std::max<std::streamoff>(0, in.tellg()));
  const std::size_t tail = std::min(size, kLogTail);
  std::string text(tail, '\0');
  in.seekg(static_cast<std::streamoff>(size - tail));
  in.read(text.data(), static_cast<std::streamsize>(tail));
  text.erase(text.find_last_not_of("\r\n ") + 1);
  const std::size_t newline = text.rfind('\n');
  return std::string(without_time(newline == std::string::npos ? text : text.substr(newline + 1)));
}

}  // namespace gradwire
