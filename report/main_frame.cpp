#include "report/main_frame.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <new>
#include <poll.h>
#include <stdexcept>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "gradwire/bad_input.h"
#include "report/logger.h"

namespace gradwire {
namespace {

constexpr int kSignalExit = 128;  // plus the signal: the exit code that shells show for it

// Ends the process by the signal's default action. Process 1 has none, so it exits.
void end_by(int signal) {
  std::raise(signal);
  ::_exit(kSignalExit + signal);
}

// Installs handlers, except for signals that the parent process ignores, as nohup does.
void end_on_signals() {
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) end_on_signal(signal);
  }
}

// Returns the errno of a write to standard output, or 0. Writes a newline, which is harmless because output
// is already lost.
int trouble_of_standard_output() { return ::write(STDOUT_FILENO, "\n", 1) < 0 ? errno : 0; }

bool reader_has_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

// Returns the arguments and a null. `PROGRAM help COMMAND` becomes `PROGRAM COMMAND --help`, with `option` as
// the last argument.
std::vector<char*> help_last(int argc, char** argv, std::string& option) {
  std::vector<char*> words(argv, argv + argc);
  if (argc > 1 && std::string_view(argv[1]) == "help") {
    words.erase(words.begin() + 1);
    words.push_back(option.data());
  }
  words.push_back(nullptr);
  return words;
}

}  // namespace

void end_on_signal(int signal) {
  struct sigaction action {};
  action.sa_handler = end_by;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  ::sigaction(signal, &action, nullptr);
}

int exit_code_of(const std::function<int()>& work,
                 const std::function<void(const std::string& what, int code)>& report) {
  std::string what;
  int code = kBadUsage;
  try {
    return work();
  } catch (const BadInput& error) {
    what = error.what();
  } catch (const std::invalid_argument& error) {
    what = error.what();
  } catch (const std::bad_alloc&) {
    what = "there is not enough memory";
    code = kFailed;
  } catch (const std::exception& error) {
    what = error.what();
    code = kFailed;
  }
  report(what, code);
  return code;
}

std::string flush_standard_output() {
  const int error = std::fflush(stdout) != 0 ? errno : 0;
  if (error == 0 && std::ferror(stdout) == 0) return "";
  if (reader_has_gone()) return "";
  const int cause = error != 0 ? error : trouble_of_standard_output();
  const std::string what = "standard output cannot be written";
  return cause != 0 ? what + ": " + std::strerror(cause) : what + " completely; a part is lost";
}

int run_main(const std::string& program, int argc, char** argv, int (*work)(int argc, char** argv)) {
  guard_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like a full disk
  end_on_signals();
  std::string option = "--help";
  std::vector<char*> words = help_last(argc, argv, option);
  const int code = work(static_cast<int>(words.size()) - 1, words.data());
  const std::string trouble = flush_standard_output();
  if (code != 0 || trouble.empty()) return code;
  Logger(program, log_format(argc, argv)).complain(trouble);
  return kFailed;
}

}  // namespace gradwire
