#include "experiments/cli/run/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/json.h"

namespace gradwire {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::duration<double> kLongestInterval{60};

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 128> text;
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

std::string scaled(double value, const char* unit, const char* base) {
  constexpr std::array<const char*, 5> kPrefixes = {"", "k", "M", "G", "T"};
  std::size_t k = 0;
  for (; value >= 999.5 && k + 1 < kPrefixes.size(); ++k) value /= 1000;
  if (k == 0) return format("%.0f %s", value, base);
  return format(value < 9.95   ? "%.2f %s%s"
                : value < 99.5 ? "%.1f %s%s"
                               : "%.0f %s%s",
                value, kPrefixes[k], unit);
}

std::string duration_text(double seconds) {
  if (!(seconds < 360000)) return "long";
  const auto s = static_cast<unsigned>(std::lround(seconds));
  if (s < 60) return format("%u s", s);
  if (s < 3600) return format("%u:%02u min", s / 60, s % 60);
  return format("%u:%02u h", s / 3600, s % 3600 / 60);
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

}  // namespace

std::string count_text(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string bytes_text(double bytes) { return scaled(bytes, "B", "bytes"); }
std::string bits_text(double bits) { return scaled(bits, "bit", "bits"); }

std::string rate_text(double per_second) {
  if (per_second >= 9995) return format("%.0fk", per_second / 1000);
  if (per_second >= 999.5) return format("%.1fk", per_second / 1000);
  return format(per_second >= 9.95 ? "%.0f" : "%.1f", per_second);
}

Progress::Progress(std::string name, std::uint32_t rounds, Verbosity verbosity, Log log)
    : name_(std::move(name)),
      rounds_(rounds),
      verbosity_(verbosity),
      log_(std::move(log)),
      terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (line_open_) std::fputc('\n', stderr);  // an error follows
}

void Progress::record(const RoundRecord& record) {
  record_ = record;
  done_ = record.round;
  if (verbosity_ == Verbosity::kJson) {
    const std::string text = json_line(record) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return;
  }
  round(record.round);
}

void Progress::round(std::uint32_t done) {
  done_ = done;
  if (verbosity_ != Verbosity::kNormal) return;
  const auto now = Clock::now();
  if (now >= next_show_) show(now, false);
}

void Progress::note(const LogLine& line) {
  if (verbosity_ == Verbosity::kQuiet) return;
  if (line_open_) std::fputs("\r\x1b[K", stderr);
  line_open_ = false;
  if (log_) log_(line);
}

void Progress::finish() {
  if (verbosity_ != Verbosity::kNormal || finished_) return;
  finished_ = true;
  if (terminal_ || shown_ != done_) show(Clock::now(), true);
}

void Progress::show(Clock::time_point now, bool last) {
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  shown_ = done_;
  if (!terminal_) {
    if (log_) log_(LogLine(line(elapsed, std::string::npos)).in_round(done_));
    next_show_ = now + std::chrono::duration_cast<Clock::duration>(interval_);
    interval_ = std::min(2 * interval_, kLongestInterval);
    return;
  }
  std::fprintf(stderr, "\r%s\x1b[K%s", line(elapsed, terminal_width() - 1).c_str(), last ? "\n" : "");
  std::fflush(stderr);
  line_open_ = !last;
  next_show_ = now + kRedraw;
}

std::string Progress::line(double elapsed, std::size_t width) const {
  const std::string head = format("%.40s  %u/%u", name_.c_str(), done_, rounds_);
  std::string state, sent, pace;
  if (record_) {
    const RoundRecord& r = *record_;
    state = format("  loss %.4g", r.loss);
    if (r.accuracy) {
      state += format("  accuracy %.1f%%", 100 * *r.accuracy);
    } else if (r.grad_norm_sq) {
      state += format("  |grad|^2 %.2e", *r.grad_norm_sq);
    }
    sent = "  up " + bits_text(r.bits_up) + "/client, " + bytes_text(static_cast<double>(r.bytes_up)) +
           " in all";
  }
  if (done_ > before_ && elapsed > 0) {
    const double rate = (done_ - before_) / elapsed;
    pace = "  " + rate_text(rate) + " rounds/s";
    if (done_ < rounds_ && !finished_) pace += "  ETA " + duration_text((rounds_ - done_) / rate);
  }
  // On a narrow terminal, only the bytes are shown of what was sent. What still does not fit is cut off.
  if (record_ && head.size() + state.size() + sent.size() + pace.size() > width)
    sent = "  up " + bytes_text(static_cast<double>(record_->bytes_up));
  return (head + state + sent + pace).substr(0, width);
}

}  // namespace gradwire
