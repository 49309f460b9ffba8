// The frame of every program: signals, standard streams and exit code.
#pragma once

#include <functional>
#include <string>

namespace gradwire {

// Runs a program and returns its exit code. The word `help` in place of a command means --help. Guards the
// standard streams, makes signals end the process, calls work(argc, argv), and checks that all of standard
// output was written. If it was not, and work() returned 0, prints one line and returns kFailed. A reader
// that has closed its pipe is not an error.
int run_main(const std::string& program, int argc, char** argv, int (*work)(int argc, char** argv));

// Returns the result of `work`. If `work` throws, returns kBadUsage for bad input and kFailed otherwise, and
// passes the error (one line) and this exit code to `report`.
int exit_code_of(const std::function<int()>& work,
                 const std::function<void(const std::string& what, int code)>& report);

// Flushes standard output. Returns why this or an earlier write failed, or "" if all was written or the
// reader has closed its pipe.
std::string flush_standard_output();

// Makes `signal` end the process, as by default. This also works for process 1 of a container, where the
// kernel ignores signals without a handler. A signal handler may call it.
void end_on_signal(int signal);

}  // namespace gradwire
