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

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

}  // namespace

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
    state = r.round == done_ ? "  " : format("  round %u: ", r.round);  // the record may be older
    state += format("loss %.4g", r.loss);
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
