// Tests of the server metrics as text for Prometheus, and of the reader of that text.
#include "fl_server/metrics/exposition.h"

#include <gtest/gtest.h>

#include "tests/support/prometheus.h"

namespace gradwire {
namespace {

ProcessMetrics some_process() { return {"0.2.0 \"a\\b\"\nc", 1.5e9, 2.25, 4096, 7}; }

TEST(Exposition, WritesValidTextForAnIdleServer) {
  const PrometheusText text(exposition(ServerMetrics(), some_process()));
  EXPECT_EQ(text["gradwire_round_seconds_count"], 0);
  EXPECT_TRUE(std::isnan(text["gradwire_loss"]));
  EXPECT_EQ(text[R"(gradwire_build_info{build="0.2.0 \"a\\b\"\nc"})"], 1);
}

TEST(Exposition, WritesTheCounts) {
  ServerMetrics server_metrics;
  server_metrics.clients.set(10);
  server_metrics.connected.set(7);
  server_metrics.reject(Rejection::kNorm);
  server_metrics.end(Ending::kSilent);
  server_metrics.end(Ending::kSilent);
  server_metrics.received.add(FrameType::kReply, 1000);
  server_metrics.sent.add(FrameType::kRound, 1ull << 60);
  server_metrics.bytes_up.set(123456789012345);
  server_metrics.bytes_staged.set(11);
  server_metrics.stalled_since.set(1.7e9);
  server_metrics.loss.set(1e-300);
  server_metrics.round_time.observe(0.02);
  server_metrics.round_time.observe(3000);
  const PrometheusText text(exposition(server_metrics, some_process()));
  EXPECT_EQ(text["gradwire_clients{state=\"connected\"}"], 7);
  EXPECT_EQ(text["gradwire_clients{state=\"missing\"}"], 3);
  EXPECT_EQ(text["gradwire_rejected_updates_total{reason=\"norm\"}"], 1);
  EXPECT_EQ(text["gradwire_rejected_updates_total{reason=\"late\"}"], 0);
  EXPECT_EQ(text["gradwire_connections_ended_total{reason=\"silent\"}"], 2);
  EXPECT_EQ(text["gradwire_frames_total{direction=\"received\",kind=\"Reply\"}"], 1);
  EXPECT_EQ(text["gradwire_frame_bytes_total{direction=\"sent\",kind=\"Round\"}"], 0x1p60);
  EXPECT_EQ(text["gradwire_bytes_total{direction=\"up\"}"], 123456789012345);
  EXPECT_EQ(text["gradwire_waiting_bytes{queue=\"replies\"}"], 11);
  EXPECT_EQ(text["gradwire_loss"], 1e-300);
  EXPECT_EQ(text["gradwire_stalled_since_seconds"], 1.7e9);
  EXPECT_EQ(text["gradwire_stalled_clients"], 0);
  EXPECT_EQ(text["gradwire_round_seconds_bucket{le=\"0.0001\"}"], 0);
  EXPECT_EQ(text["gradwire_round_seconds_bucket{le=\"0.01\"}"], 0);
  EXPECT_EQ(text["gradwire_round_seconds_bucket{le=\"0.025\"}"], 1);
  EXPECT_EQ(text["gradwire_round_seconds_bucket{le=\"100\"}"], 1);
  EXPECT_EQ(text["gradwire_round_seconds_count"], 2);
  EXPECT_EQ(text["process_cpu_seconds_total"], 2.25);
}

TEST(Exposition, WritesClientsAndConnectionsButNoRunForARelay) {
  ServerMetrics server_metrics;
  server_metrics.connected.set(4);
  server_metrics.has_server.set(1);
  server_metrics.accepted.add(6);
  const std::string written = exposition(server_metrics, some_process(), MetricsSource::kRelay);
  const PrometheusText text(written);
  EXPECT_EQ(text["gradwire_clients{state=\"connected\"}"], 4);
  EXPECT_EQ(text["gradwire_relay_has_server"], 1);
  EXPECT_EQ(text["gradwire_connections_accepted_total"], 6);
  for (const char* of_a_run : {"gradwire_round", "missing", "gradwire_loss", "_seconds_bucket"})
    EXPECT_EQ(written.find(of_a_run), written.npos) << of_a_run;
}

TEST(Exposition, ReadsBackWhatItWrites) {
  ServerMetrics server_metrics;
  server_metrics.end(Ending::kNotGradwire);
  server_metrics.loss.set(0.1);
  const std::string text = exposition(server_metrics, some_process());
  const PrometheusText strict(text);
  const std::vector<Sample> samples = samples_of(text);
  EXPECT_EQ(samples.size(), strict.samples().size());
  for (const auto& [name, value] : samples) EXPECT_TRUE(value == strict[name] || std::isnan(value)) << name;
}

TEST(Exposition, SkipsDamagedLines) {
  EXPECT_TRUE(samples_of("").empty());
  EXPECT_TRUE(samples_of("\n\n# a 1\nname\n 5\nname x\nname 1x\nname \n").empty());
  const std::vector<Sample> samples = samples_of("a 1\nb{c=\"d e\"} +Inf\nlast 2.5");
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0], Sample("a", 1));
  EXPECT_EQ(samples[1], Sample("b{c=\"d e\"}", INFINITY));
  EXPECT_EQ(samples[2], Sample("last", 2.5));
}

}  // namespace
}  // namespace gradwire
