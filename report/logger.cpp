#include "report/logger.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <mutex>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "base/printable.h"
#include "report/log_sink.h"

namespace gradwire {
namespace {

constexpr std::string_view kTimeShape = "0000-00-00T00:00:00.000Z ";

std::uint64_t now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

std::string members(const LogLine& line) {
  std::string json;
  if (line.client) json += "\"client\": " + std::to_string(*line.client) + ", ";
  if (line.round) json += "\"round\": " + std::to_string(*line.round) + ", ";
  return json + "\"message\": " + json_string(line.text);
}

}  // namespace

struct Logger::Impl {
  Impl(std::string p, LogFormat f, LogRate rate)
      : program(std::move(p)), format(f), sink(make_log_sink(format)), limit(rate) {}

  void print(const LogLine& line) {
    if (least <= line.level)
      sink->print(line.level, format == LogFormat::kJson ? members(line) : printable(line.text));
  }
  void print_sums(std::uint64_t now, bool all = false) {
    for (const LogLine& sum : limit.sums(now, all)) print(sum);
  }

  // Starts a thread that prints the summaries, because the next line may be hours away. If no thread can be
  // started, the next line prints them.
  void begin_to_sum() {
    if (idle) wake.notify_one();
    if (summing.joinable()) return;
    try {
      summing = std::thread([this] { sum_up(); });
    } catch (const std::system_error&) {
    }
  }
  void sum_up() {
    std::unique_lock lock(mutex);
    while (!over) {
      const std::uint64_t now = now_ms();
      print_sums(now);
      const auto next = limit.next_sum_ms();
      idle = !next;
      if (next)
        wake.wait_for(lock, std::chrono::milliseconds(*next - std::min(now, *next)));
      else
        wake.wait(lock);
    }
  }

  const std::string program;
  const LogFormat format;
  const std::unique_ptr<LogSink> sink;
  std::atomic<LogLevel> least = LogLevel::kInfo;
  std::mutex mutex;
  LogLimit limit;
  bool over = false, idle = false;
  std::atomic<bool> begun = false;  // true after the first line, even if a quiet program did not print it
  std::condition_variable wake;
  std::thread summing;
};

Logger::Logger(std::string program, LogFormat format, LogRate rate)
    : impl_(std::make_unique<Impl>(std::move(program), format, rate)) {}

Logger::~Logger() {
  Impl& m = *impl_;
  {
    const std::lock_guard lock(m.mutex);
    m.over = true;
    m.print_sums(now_ms(), true);
  }
  m.wake.notify_one();
  if (m.summing.joinable()) m.summing.join();
}

void Logger::set_quiet(bool quiet) { impl_->least = quiet ? LogLevel::kError : LogLevel::kInfo; }

void Logger::log(const LogLine& line) {
  Impl& m = *impl_;
  m.begun = true;
  if (line.level < m.least) return;
  const std::lock_guard lock(m.mutex);
  const std::uint64_t now = now_ms();
  m.print_sums(now);
  if (m.limit.take(line, now)) return m.print(line);
  m.begin_to_sum();
}

void Logger::complain(const std::string& what) {
  std::fflush(stdout);  // keeps stdout and stderr in order
  if (impl_->format == LogFormat::kJson) return log_error(what);
  const std::string text = impl_->program + ": " + printable(what) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void Logger::log_error(const std::string& what) {
  LogLine line(what);
  line.level = LogLevel::kError;
  log(line);
}

int Logger::fail(const std::string& what, int code) {
  code == kBadUsage && !impl_->begun ? complain(what) : log_error(what);
  return code;
}

LogFormat log_format(int argc, char** argv) {
  const bool json = std::any_of(argv + std::min(argc, 1), argv + argc,
                                [](const char* word) { return std::string_view(word) == "--json"; });
  return json ? LogFormat::kJson : LogFormat::kText;
}

std::string_view without_time(std::string_view line) {
  const auto same_shape = [](char c, char shape) { return shape == '0' ? c >= '0' && c <= '9' : c == shape; };
  if (line.size() < kTimeShape.size() ||
      !std::equal(kTimeShape.begin(), kTimeShape.end(), line.begin(),
                  [&](char shape, char c) { return same_shape(c, shape); }))
    return line;
  const std::size_t colon = line.find(": ", kTimeShape.size());
  return colon == std::string_view::npos ? line : line.substr(colon + 2);
}

void guard_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
}

}  // namespace gradwire
