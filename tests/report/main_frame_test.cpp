#include "report/main_frame.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <iostream>
#include <unistd.h>

namespace gradwire {
namespace {

int run(int (*work)(int, char**), const char* option = nullptr) {
  std::array<char*, 3> argv = {const_cast<char*>("program"), const_cast<char*>(option), nullptr};
  return run_main("program", option == nullptr ? 1 : 2, argv.data(), work);
}

void open_as_stdout(const char* file) {
  std::fflush(stdout);
  ::dup2(::open(file, O_WRONLY), STDOUT_FILENO);
}

int print_a_word(int, char**) {
  std::printf("word\n");
  return 0;
}
int print_much(int, char**) {
  for (int k = 0; k < 100'000; ++k) std::cout << "word\n";
  return 0;
}
int fail_with_3(int, char**) {
  std::printf("word\n");
  return 3;
}

TEST(RunMainDeathTest, FailsWhenStandardOutputCannotBeWritten) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const char* const line = "^program: standard output cannot be written: No space left on device\n$";
  for (const auto work : {print_a_word, print_much}) {
    EXPECT_EXIT((open_as_stdout("/dev/full"), std::exit(run(work))), ::testing::ExitedWithCode(1), line);
  }
  EXPECT_EXIT((open_as_stdout("/dev/full"), std::exit(run(print_a_word, "--json"))),
              ::testing::ExitedWithCode(1), "\"level\": \"error\", \"message\": \"standard output cannot");
  EXPECT_EXIT((open_as_stdout("/dev/full"), std::exit(run(fail_with_3))), ::testing::ExitedWithCode(3), "^$");
}

TEST(RunMainDeathTest, AcceptsAClosedPipeOrStream) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto close_the_reader = [] {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
  };
  EXPECT_EXIT((close_the_reader(), std::exit(run(print_much))), ::testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT((::close(STDOUT_FILENO), std::exit(run(print_a_word))), ::testing::ExitedWithCode(0), "^$");
}

template <int signal>
int raise_it(int, char**) {
  std::raise(signal);
  return 7;
}

// Returns a predicate: whether a signal ended a program. The thread sanitizer delivers signals late, so the
// program may instead end with the exit code 128 + signal, like a shell.
auto ended_by(int signal) {
  return [signal](int status) {
    return ::testing::KilledBySignal(signal)(status) || ::testing::ExitedWithCode(128 + signal)(status);
  };
}

TEST(RunMainDeathTest, EndsBySignalsThatEndAProgramByDefault) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(run(raise_it<SIGTERM>)), ended_by(SIGTERM), "");
  EXPECT_EXIT(std::exit(run(raise_it<SIGINT>)), ended_by(SIGINT), "");
  EXPECT_EXIT(std::exit(run(raise_it<SIGHUP>)), ended_by(SIGHUP), "");
}

TEST(RunMainDeathTest, KeepsIgnoringSignalsThatItsParentIgnores) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT((std::signal(SIGHUP, SIG_IGN), std::exit(run(raise_it<SIGHUP>))), ::testing::ExitedWithCode(7),
              "");
}

}  // namespace
}  // namespace gradwire
