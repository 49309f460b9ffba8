// The frame around the work of every program: its signals, its standard streams and its exit code.
#pragma once

#include <string>

namespace gradwire {

// Runs a program: main() returns what it returns. Guards the standard streams, ends the process on signals,
// calls work(argc, argv), and then checks that all of standard output was written. If it was not, a program
// that would return 0 says so in one line and returns kFailed. A reader that has closed its pipe is not an
// error.
int run_main(const std::string& program, int argc, char** argv, int (*work)(int argc, char** argv));

// What the exception that is being handled tells the user, in one line, and the exit code it means: kBadUsage
// for bad input, else kFailed. For catch blocks alone.
struct Failure {
  std::string what;
  int code = 0;
};
Failure current_failure();

// Writes out what standard output still holds. Returns why that, or an earlier write, failed; empty if all is
// written or the reader has gone away.
std::string flush_standard_output();

// Makes `signal` end the process, as it would by default, also where this is process 1 of a container: there
// the kernel ignores signals without a handler. May be called by a signal handler.
void end_on_signal(int signal);

}  // namespace gradwire
