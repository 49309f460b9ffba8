// The only list of the columns of metrics.csv. Rows in summary.json and rows that --json prints have the same
// members.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rounds/round_loop.h"

namespace gradwire {

// Calls visit(name, member, meaning) for each column, in order. Record is RoundRecord or const RoundRecord.
// Add new columns at the end, because files of older versions lack them.
template <class Record, class Visit>
void metric_columns(Record& record, Visit&& visit) {
  visit("round", record.round, "k: the row is at x^k");
  visit("loss", record.loss, "f(x^k), weighted as clients.weights says");
  visit("grad_norm_sq", record.grad_norm_sq,
        "||grad f(x^k)||^2; empty in rows that do not measure it (evaluation.grad_norm)");
  visit("accuracy", record.accuracy,
        "share of the test samples that are classified correctly; empty without test samples");
  visit("bits_up", record.bits_up,
        "sent by a client on average until this row, by the definition of the compressor");
  visit("bits_down", record.bits_down, "sent to a client on average until this row");
  visit("bytes_up", record.bytes_up, "encoded messages of all clients until this row");
  visit("bytes_down", record.bytes_down, "encoded messages to all clients until this row");
  visit("grad_calls", record.grad_calls,
        "gradients of single samples until this row, divided by the number of clients");
  visit("replies", record.replies, "replies that the round before this row used");
  visit("seconds", record.seconds,
        "time since the start, evaluations included; with clients.latency the virtual time");
  visit("bits_up_paper", record.bits_up_paper,
        "bits_up as papers count: 32 bits for a number, nothing for indices");
  visit("bits_down_paper", record.bits_down_paper, "bits_down as papers count");
  visit("sim_seconds", record.sim_seconds, "seconds of a run on the virtual clock, else empty");
  visit("lyapunov", record.lyapunov, "with run.monitor: the Lyapunov function of the theorem");
  visit("lyapunov_bound", record.lyapunov_bound, "with run.monitor: its bound");
  visit("evaluation_bytes_up", record.evaluation_bytes_up,
        "bytes_up of evaluations, including the one of this row");
  visit("evaluation_bytes_down", record.evaluation_bytes_down,
        "bytes_down of evaluations, including the one of this row");
}

// Returns the names with commas between them.
const std::string& metrics_header();

// Returns the line of a record without its newline. Numbers have 17 significant digits.
std::string metrics_line(const RoundRecord& record);

// Parses a line without its newline. The line may lack the last columns (older versions) or have more (later
// versions). Returns nullopt if it is not a line of metrics.csv.
std::optional<RoundRecord> parse_metrics_line(std::string_view line);

}  // namespace gradwire
