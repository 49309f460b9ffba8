#include "fl_server/metrics/exposition.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>

#include "base/value.h"

namespace gradwire {
namespace {

std::string text_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return number_text(value);
}

// Formats a number without an exponent, as in 0.0001.
std::string limit_text(double value) {
  std::array<char, 40> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed).ptr;
  return std::string(text.data(), end);
}

std::string text_of(std::uint64_t value) { return std::to_string(value); }

std::string quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text += '"';
}

std::string label(const char* name, std::string_view value) {
  return std::string(name) + "=" + quoted(value);
}

class Writer {
 public:
  // Begins a metric; the following samples belong to it.
  void metric(const char* name, const char* type, const char* help) {
    name_ = name;
    text_ += "# HELP " + name_ + " " + help + "\n# TYPE " + name_ + " " + type + "\n";
  }
  template <class T>
  void sample(T value, const std::string& labels = "", const char* suffix = "") {
    text_ += name_ + suffix + (labels.empty() ? "" : "{" + labels + "}") + " " + text_of(value) + "\n";
  }
  void counter(const char* name, const char* help, std::uint64_t value) {
    metric(name, "counter", help);
    sample(value);
  }
  template <class T>
  void gauge(const char* name, const char* help, T value) {
    metric(name, "gauge", help);
    sample(value);
  }
  template <class Kind>
  void counters(const char* name, const char* help, const CounterOf<Kind>& counts) {
    metric(name, "counter", help);
    for (std::size_t i = 0; i < CounterOf<Kind>::kSize; ++i) {
      const auto kind = static_cast<Kind>(i);
      sample(counts.value(kind), label("reason", name_of(kind)));
    }
  }
  void histogram(const char* name, const char* help, const TimeHistogram& times) {
    metric(name, "histogram", help);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < TimeHistogram::kBuckets; ++i) {
      count += times.in_bucket(i);
      const bool last = i == TimeHistogram::kLimits.size();
      sample(count, label("le", last ? "+Inf" : limit_text(TimeHistogram::kLimits[i])), "_bucket");
    }
    sample(times.sum_seconds(), "", "_sum");
    sample(count, "", "_count");
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_, name_;
};

void write_frames(Writer& to, const ServerMetrics& server_metrics) {
  const std::array directions{std::pair("received", &server_metrics.received),
                              std::pair("sent", &server_metrics.sent)};
  const auto each = [&](auto&& value_of) {
    for (const auto& [direction, frames] : directions)
      for (std::size_t kind = 0; kind < FrameCounts::kKinds; ++kind)
        if (frames->frames(kind) > 0)
          to.sample(value_of(*frames, kind), label("direction", direction) + "," +
                                                 label("kind", name_of(static_cast<FrameType>(kind))));
  };
  to.metric("gradwire_frames_total", "counter", "Whole messages on all connections, by direction and kind.");
  each([](const FrameCounts& frames, std::size_t kind) { return frames.frames(kind); });
  to.metric("gradwire_frame_bytes_total", "counter", "Bytes of these messages, without TLS.");
  each([](const FrameCounts& frames, std::size_t kind) { return frames.bytes(kind); });
}

void write_run(Writer& to, const ServerMetrics& server_metrics) {
  to.gauge("gradwire_round", "Rounds that the run has committed, including earlier processes.",
           server_metrics.round.value());
  to.gauge("gradwire_rounds", "Rounds planned for the run.", server_metrics.rounds.value());
  to.counter("gradwire_rounds_done_total", "Rounds that this process has committed.",
             server_metrics.rounds_done.value());
  to.gauge("gradwire_stalled_since_seconds",
           "Since when a round waits for lost or silent clients, in seconds since 1970; 0 if none does.",
           server_metrics.stalled_since.value());
  to.gauge("gradwire_gives_up_at_seconds", "When the server gives up that wait; 0 if there is none.",
           server_metrics.gives_up_at.value());
  to.gauge("gradwire_stalled_clients", "Clients that the waiting round has no reply of.",
           server_metrics.stalled_clients.value());
  to.gauge("gradwire_loss", "Loss at the last evaluation.", server_metrics.loss.value());
  to.gauge("gradwire_accuracy_ratio", "Accuracy at the last evaluation.", server_metrics.accuracy.value());
  to.metric("gradwire_bytes_total", "counter",
            "Bytes of round messages from clients (up) and to them (down), including earlier processes: the "
            "columns of metrics.csv.");
  to.sample(server_metrics.bytes_up.value(), label("direction", "up"));
  to.sample(server_metrics.bytes_down.value(), label("direction", "down"));
  to.counter("gradwire_replies_used_total", "Replies that rounds have used.",
             server_metrics.replies_used.value());
  to.counters("gradwire_rejected_updates_total", "Replies that the run did not use, by reason.",
              server_metrics.rejections);
}

void write_times(Writer& to, const ServerMetrics& server_metrics) {
  to.histogram("gradwire_round_seconds", "Time from one commit to the next, including the evaluation.",
               server_metrics.round_time);
  to.histogram("gradwire_reply_seconds", "Time from a request to its whole reply.",
               server_metrics.reply_time);
  to.histogram("gradwire_commit_seconds", "Time to make a round durable.", server_metrics.commit_time);
}

void write_process(Writer& to, const ProcessMetrics& process) {
  to.metric("gradwire_build_info", "gauge", "Always 1; the label names the build.");
  to.sample(std::uint64_t{1}, label("build", process.build));
  to.gauge("process_start_time_seconds", "Start time of this process, in seconds since 1970.",
           process.started_seconds);
  to.metric("process_cpu_seconds_total", "counter", "Processor time that this process has used.");
  to.sample(process.cpu_seconds);
  to.gauge("process_resident_memory_bytes", "Resident memory of this process.", process.resident_bytes);
  to.gauge("process_open_fds", "Files and sockets that this process has open.", process.open_descriptors);
}

}  // namespace

std::string exposition(const ServerMetrics& server_metrics, const ProcessMetrics& process,
                       MetricsSource source) {
  const bool has_run = source == MetricsSource::kServer;
  Writer to;
  if (has_run) {
    write_run(to, server_metrics);
  } else {
    to.gauge("gradwire_relay_has_server", "1 while this relay has its server, else 0.",
             server_metrics.has_server.value());
  }
  to.metric("gradwire_clients", "gauge", "Clients of the run, or of the relay, by state.");
  const std::uint64_t clients = server_metrics.clients.value(), connected = server_metrics.connected.value();
  to.sample(connected, label("state", "connected"));
  if (has_run) to.sample(clients > connected ? clients - connected : 0, label("state", "missing"));
  to.gauge("gradwire_connections", "Open connections, including unauthenticated ones.",
           server_metrics.open.value());
  to.counter("gradwire_connections_accepted_total", "Accepted connections.", server_metrics.accepted.value());
  to.counters("gradwire_connections_ended_total",
              "Connections that ended or were refused before the run was over, by reason.",
              server_metrics.endings);
  write_frames(to, server_metrics);
  to.metric("gradwire_waiting_bytes", "gauge",
            "Waiting bytes: for peers that have yet to read them (write), and of replies until their round "
            "ends (replies).");
  to.sample(server_metrics.bytes_to_write.value(), label("queue", "write"));
  if (has_run) {
    to.sample(server_metrics.bytes_staged.value(), label("queue", "replies"));
    write_times(to, server_metrics);
  }
  write_process(to, process);
  return to.take();
}

std::vector<Sample> samples_of(std::string_view text) {
  std::vector<Sample> samples;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t space = line.rfind(' ');
    if (line.empty() || line[0] == '#' || space == std::string_view::npos || space == 0) continue;
    std::string_view number = line.substr(space + 1);
    if (number.starts_with('+')) number.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size()) continue;
    samples.emplace_back(line.substr(0, space), value);
  }
  return samples;
}

}  // namespace gradwire
