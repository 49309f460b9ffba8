// The only list of the columns of metrics.csv. Rows in summary.json and rows that --json prints have the same
// members.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rounds/round_loop.h"

namespace gradwire {

// Calls visit(name, member) for each column, in order. Record is RoundRecord or const RoundRecord. Add new
// columns at the end, because files of older versions lack them.
template <class Record, class Visit>
void metric_columns(Record& record, Visit&& visit) {
  visit("round", record.round);
  visit("loss", record.loss);
  visit("grad_norm_sq", record.grad_norm_sq);
  visit("accuracy", record.accuracy);
  visit("bits_up", record.bits_up);
  visit("bits_down", record.bits_down);
  visit("bytes_up", record.bytes_up);
  visit("bytes_down", record.bytes_down);
  visit("grad_calls", record.grad_calls);
  visit("replies", record.replies);
  visit("seconds", record.seconds);
  visit("bits_up_paper", record.bits_up_paper);
  visit("bits_down_paper", record.bits_down_paper);
  visit("sim_seconds", record.sim_seconds);
  visit("lyapunov", record.lyapunov);
  visit("lyapunov_bound", record.lyapunov_bound);
  visit("evaluation_bytes_up", record.evaluation_bytes_up);
  visit("evaluation_bytes_down", record.evaluation_bytes_down);
}

// Returns the names with commas between them.
const std::string& metrics_header();

// Returns the line of a record without its newline. Numbers have 17 significant digits.
std::string metrics_line(const RoundRecord& record);

// Parses a line without its newline. The line may lack the last columns (older versions) or have more (later
// versions). Returns nullopt if it is not a line of metrics.csv.
std::optional<RoundRecord> parse_metrics_line(std::string_view line);

}  // namespace gradwire
