// Tests of the output of a real server while it runs: Prometheus metrics, its folder, and `status`.
#include <gtest/gtest.h>

#include "fl_server/metrics/http_server.h"
#include "fl_server/metrics/metrics_endpoint.h"
#include "fl_server/status.h"
#include "report/json.h"
#include "report/metrics_file.h"
#include "tests/processes/process_fixture.h"
#include "tests/support/http.h"
#include "tests/support/prometheus.h"

namespace gradwire {
namespace {

class MetricsProcessTest : public ProcessTest {
 protected:
  PrometheusText counts() const { return PrometheusText(read_file(state() / kMetricsFileName)); }
  // Returns HOST:PORT from the log, or "" if the log has no address.
  static std::string metrics_address(const Process& server) {
    const std::string before = "metrics for Prometheus: http://", log = server.log();
    const std::size_t begin = log.find(before);
    if (begin == std::string::npos) return "";
    const std::size_t address = begin + before.size();
    return log.substr(address, log.find("/metrics", address) - address);
  }
};

TEST_F(MetricsProcessTest, ServesMetricsWithoutChangingBits) {
  if (!can_serve_http()) GTEST_SKIP() << "built without libmicrohttpd";
  write_config();
  Process server = start_server({"--metrics", "127.0.0.1:0"});
  const std::string where = metrics_address(server);
  ASSERT_NE(where, "") << server.log();
  EXPECT_EQ(PrometheusText(http_get(where, "/metrics").body)["gradwire_clients{state=\"missing\"}"], 3);
  std::vector<Process> clients = start_clients(address);
  double round = 0;
  for (HttpAnswer answer; (answer = http_get(where, "/metrics")).status == 200 && round < 20;) {
    const PrometheusText text(answer.body);
    EXPECT_GE(text["gradwire_round"], round);
    round = text["gradwire_round"];
  }
  EXPECT_GT(round, 0);
  expect_all_end_well(server, clients);
  expect_same_as_simulated();
}

TEST_F(MetricsProcessTest, WritesTheCountsOfMetricsCsvAndStatus) {
  write_config();
  Process server = start_server();
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  const PrometheusText text = counts();
  const auto last = parse_metrics_line(lines_of(read_file(state() / "metrics.csv")).back());
  ASSERT_TRUE(last);
  EXPECT_EQ(text["gradwire_round"], 200);
  EXPECT_EQ(text["gradwire_rounds_done_total"], 200);
  EXPECT_EQ(text["gradwire_round_seconds_count"], 200);
  EXPECT_EQ(text["gradwire_commit_seconds_count"], 200);
  EXPECT_EQ(text["gradwire_replies_used_total"], 600);
  EXPECT_EQ(text["gradwire_bytes_total{direction=\"up\"}"], static_cast<double>(last->bytes_up));
  EXPECT_EQ(text["gradwire_bytes_total{direction=\"down\"}"], static_cast<double>(last->bytes_down));
  EXPECT_EQ(text["gradwire_loss"], last->loss);
  // Nothing was sent twice, so all replies belong to rounds and evaluations.
  EXPECT_EQ(text["gradwire_frame_bytes_total{direction=\"received\",kind=\"Reply\"}"],
            static_cast<double>(last->bytes_up + last->evaluation_bytes_up));
  EXPECT_EQ(text["gradwire_reply_seconds_count"],
            text["gradwire_frames_total{direction=\"received\",kind=\"Reply\"}"]);
  EXPECT_EQ(text["gradwire_connections_accepted_total"], 3);
  EXPECT_EQ(text["gradwire_connections"], 0) << "the process has ended";

  const Json status = Json::parse(status_json(state()).text);
  ASSERT_TRUE(status.at("counts").is_object());
  EXPECT_EQ(status.at("counts").size(), text.samples().size());
  for (const auto& [name, value] : text.samples())
    EXPECT_TRUE(status.at("counts").contains(name) &&
                (std::isnan(value) || status.at("counts").at(name).get<double>() == value))
        << name;
  const std::string said = status_text(state()).text;
  EXPECT_NE(said.find("replies     600 used; none rejected\n"), std::string::npos) << said;
}

TEST_F(MetricsProcessTest, ShowsRejectedPeersInTheStatusOfARunningServer) {
  write_config();
  Process server = start_server();
  for (const char* const bytes :
       {"GET / HTTP/1.1\r\n\r\n................", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}) {
    const HttpPeer unauthenticated(address);
    unauthenticated.send(bytes);
    EXPECT_EQ(unauthenticated.read_all(), "");
  }
  EXPECT_TRUE(eventually([&] {
    return status_text(state()).text.find("ended: foreign 2") != std::string::npos;
  })) << status_text(state()).text;
}

TEST_F(MetricsProcessTest, RejectsOpenOrInvalidMetricsAddresses) {
  write_config();
  const std::vector<std::string> server = {"run.toml", "--listen", "127.0.0.1:0", "--state", "state"};
  const auto refuse = [&](const std::string& where, const std::string& message) {
    std::vector<std::string> arguments = server;
    arguments.insert(arguments.end(), {"--metrics", where});
    expect_refusal("gradwire-server", arguments, 2, message);
  };
  refuse("0.0.0.0:9700", "is open to other machines, in plain text and without a password");
  refuse("run.toml", "write it as HOST:PORT");
  EXPECT_FALSE(fs::exists(state()));
}

}  // namespace
}  // namespace gradwire
