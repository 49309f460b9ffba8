#include "fl_server/summary.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <unistd.h>

#include "algorithms/support/params.h"
#include "proto/config/experiment.h"
#include "proto/report/build_info.h"
#include "proto/report/json.h"

namespace gradwire {
namespace {

constexpr std::size_t kMaxListed = 10'000;  // clients whose L_i are written

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

// Writes a number if the text is one.
void write_parameter_value(JsonWriter& json, std::string_view key, const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size()) {
    json.member(key, number);
  } else {
    json.member(key, text);
  }
}

void write_algorithm(JsonWriter& json, const AlgorithmSpec& spec) {
  json.key("algorithm");
  json.begin_object();
  json.member("name", spec.name);
  json.member("compressor", spec.compressor);
  write_parameter_value(json, "step_size", spec.step_size);
  if (spec.batch == 0) {
    json.member("batch", "full");
  } else {
    json.member("batch", spec.batch);
  }
  json.member("participation", spec.participation);
  for (const auto& [key, value] : spec.parameters) write_parameter_value(json, key, value);
  json.end_object();
}

void write_constants(JsonWriter& json, const Theory& theory) {
  json.key("constants");
  json.begin_object();
  json.member("omega", theory.compressor.omega);
  json.member("alpha", theory.compressor.alpha);
  json.member("zeta", theory.compressor.zeta);
  if (theory.smoothness != nullptr) {
    const Smoothness& s = *theory.smoothness;
    json.member("L", s.L);
    json.member("L_tilde", s.L_tilde());
    json.member("L_avg", s.L_avg());
    json.member("L_max", s.L_max());
    json.member("mu", s.mu);
    json.member("L_exact", s.exact);
    json.member("L_estimated", s.estimated);
    if (s.L_plus) json.member("L_plus", *s.L_plus);
    if (s.L_pm) json.member("L_pm", *s.L_pm);
    json.member("L_s", s.L_s);
    json.member("L_sample_max", s.L_sample_max);
    if (s.L_i.size() > kMaxListed) return json.end_object();
    json.key("L_i");
    json.begin_array();
    for (const double L_i : s.L_i) json.value(L_i);
    json.end_array();
  }
  json.end_object();
}

void write_record(JsonWriter& json, const RoundRecord& r) {
  json.begin_object();
  json.member("round", r.round);
  json.member("loss", r.loss);
  json.member("grad_norm_sq", r.grad_norm_sq);
  json.key("accuracy");
  if (r.accuracy) {
    json.value(*r.accuracy);
  } else {
    json.null();
  }
  json.member("bits_up", r.bits_up);
  json.member("bits_down", r.bits_down);
  json.member("bits_up_paper", r.bits_up_paper);
  json.member("bits_down_paper", r.bits_down_paper);
  json.member("bytes_up", r.bytes_up);
  json.member("bytes_down", r.bytes_down);
  json.member("grad_calls", r.grad_calls);
  json.end_object();
}

void write_result(JsonWriter& json, const Summary& s) {
  json.member("outcome", outcome_name(s.outcome));
  json.member("rounds", s.rounds);
  json.key("loss_at_start");
  if (s.loss_at_start) {
    json.value(*s.loss_at_start);
  } else {
    json.null();
  }
  json.key("last");
  if (s.last) {
    write_record(json, *s.last);
  } else {
    json.null();
  }
  json.member("seconds", s.seconds);
}

}  // namespace

std::string loss_rise(std::optional<double> at_start, const std::optional<RoundRecord>& last) {
  constexpr double kRounding = 1e-9;
  const double at_end = last ? last->loss : std::nan("");
  if (!at_start || !std::isfinite(at_end) || !(at_end - *at_start > kRounding * std::abs(*at_start)))
    return "";
  return "the run ends with a loss of " + write_parameter(at_end) + ", above the " +
         write_parameter(*at_start) +
         " that it began with; try a smaller algorithm.step_size, or other parameters in [algorithm]";
}

std::string outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFinished: return "finished";
    case Outcome::kReachedTarget: return "reached_target";
    case Outcome::kStopped: return "stopped";
    case Outcome::kDiverged: return "diverged";
  }
  return "";
}

std::string summary_json(const Summary& s) {
  const proto::Experiment& e = *s.experiment;
  JsonWriter json;
  json.begin_object();
  json.member("name", e.name());
  json.member("version", version());
  json.member("build", build_info());
  json.member("kernels", s.kernels);
  json.member("host", host_name());
  json.member("seed", e.seed());
  json.member("precision", e.precision());
  json.member("problem", e.problem().kind());
  json.member("data", e.problem().data());
  json.member("clients", s.theory.n);
  json.member("d", std::uint64_t{s.theory.d});
  json.member("transport", s.transport);
  json.member("threads", std::uint32_t{s.threads});
  write_algorithm(json, algorithm_spec(e));
  write_constants(json, s.theory);
  json.key("warnings");
  json.begin_array();
  for (const std::string& warning : s.warnings) json.value(warning);
  if (const std::string rise = loss_rise(s.loss_at_start, s.last); !rise.empty()) json.value(rise);
  json.end_array();
  write_result(json, s);
  json.key("processes");
  json.begin_array();
  for (const ProcessInfo& p : s.processes) {
    json.begin_object();
    json.member("role", p.role);
    json.member("pid", p.pid);
    json.member("executable", p.executable);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace gradwire
