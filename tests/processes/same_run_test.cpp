// Tests that thread count, codec, ranks, transport and process boundaries change no bit of a result, for
// every algorithm and every neural network.
#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "report/results_dir.h"
#include "simulation/over_ranks.h"
#include "tests/experiments/small_runs.h"
#include "tests/experiments/trace.h"
#include "tests/mpi/thread_ranks.h"
#include "tests/processes/site_fixture.h"

namespace gradwire {
namespace {

struct Case {
  std::string name;   // an algorithm or a network
  std::size_t index;  // its index among all algorithms, or all networks
  bool is_network;
  std::string way;  // "one_process", or the transport of the messages
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name << " " << c.way; }

const std::vector<std::string> kNetworkWays = {"tcp", "tls", "relays"};

std::vector<Case> all_cases() {
  std::vector<Case> all;
  const auto add = [&](const std::string& name, std::size_t index, bool is_network, bool is_asynchronous) {
    all.push_back({name, index, is_network, "one_process"});
    if (is_asynchronous) return;  // over a transport, its bits depend on the order of replies
    for (const std::string& way : kNetworkWays) all.push_back({name, index, is_network, way});
  };
  for (std::size_t k = 0; k < all_algorithms().size(); ++k)
    add(std::string(all_algorithms()[k].traits.name), k, false, all_algorithms()[k].traits.asynchronous);
  for (std::size_t k = 0; k < models().size(); ++k) add(models()[k].name + std::to_string(k), k, true, false);
  return all;
}

// Returns whether a case is slow. For each algorithm or network, one transport is not slow.
bool is_slow(const Case& c) {
  return c.way != "one_process" && c.way != kNetworkWays[c.index % kNetworkWays.size()];
}

std::vector<Case> cases(bool slow) {
  std::vector<Case> chosen = all_cases();
  std::erase_if(chosen, [&](const Case& c) { return is_slow(c) != slow; });
  return chosen;
}

class SameRun : public SiteTest, public ::testing::WithParamInterface<Case> {
 protected:
  SameRun() { write_texts(folder); }

  std::vector<Choice> choices() const { return choices_of(find_algorithm(GetParam().name)); }
  // Returns one of the experiments of the case. The index decides the precision.
  std::string text() const {
    const std::string precision = GetParam().index % 2 == 0 ? "fp32" : "fp64";
    return GetParam().is_network ? model_config(models()[GetParam().index], precision)
                                 : config(choices().back(), precision);
  }
  Prepared prepared(const std::string& text, const std::vector<std::string>& overrides = {}) const {
    return prepare(parse_experiment(text, folder.path() / "run.toml", overrides));
  }

  void expect_same_in_one_process(const std::string& text,
                                  const std::vector<std::string>& overrides = {}) const {
    const Prepared experiment = prepared(text, overrides);
    const RunTrace one = trace(experiment, false, 1), encoded = trace(experiment, true, 1);
    EXPECT_NE(one.model, experiment.x0) << "the model did not change";
    EXPECT_EQ(one, trace(experiment, false, 4));
    EXPECT_EQ(one.model, encoded.model);
    EXPECT_EQ(encoded, trace(experiment, true, 4));
    // The codec may compress the messages of networks, and the metrics count the compressed bytes.
    if (!GetParam().is_network) {
      EXPECT_EQ(one.metrics, encoded.metrics);
    }
    try {
      check_for_ranks(experiment);
    } catch (const UsageError&) {
      return;
    }
    testing::on_ranks(3, [&](std::shared_ptr<Ranks> ranks) {
      const RunTrace shared = trace(experiment, false, 1, ranks);
      EXPECT_EQ(shared.model, one.model);
      if (ranks->rank() == 0) {
        EXPECT_EQ(shared.metrics, one.metrics);
      }
    });
  }

  void expect_same_over_network() {
    if (GetParam().way == "relays") {
      expect_same_through_relays();
    } else {
      expect_same_by_run(GetParam().way);
    }
  }

 private:
  // Runs the program over this transport, and expects the results of a run in one process.
  void expect_same_by_run(const std::string& transport) {
    const std::string file = folder.write("run.toml", text()).string();
    for (const std::string& kind : {std::string("encoded"), transport}) {
      const auto run =
          run_gradwire(folder.path(), {"run", file, "--quiet", "--out", kind, "--transport", kind});
      ASSERT_EQ(run.code, 0) << run.err;
    }
    const auto file_of = [&](const std::string& kind, const std::string& name) {
      return read_file(folder.path() / kind / name);
    };
    for (const std::string name : {"model.bin", "config.toml"})
      EXPECT_EQ(file_of("encoded", name), file_of(transport, name)) << name;
    EXPECT_EQ(without_seconds(file_of("encoded", "metrics.csv")),
              without_seconds(file_of(transport, "metrics.csv")));
    check_processes(file_of(transport, "summary.json"));
  }

  // Runs two clients at one relay, one at another, and one directly at the server.
  void expect_same_through_relays() {
    // A server knows less of the objective than a simulation, so the step sizes of theory would differ.
    // Portable kernels give these bits to clients on other processors too, and clients of boards compress
    // nothing (tools/test_edge).
    write_config(to_toml(prepared(text(), {"run.kernels=portable", "server.zstd=off"}).experiment));
    const std::string data = GetParam().is_network ? models()[GetParam().index].data() : "synthetic";
    Process server = start_server();
    Process north = start_relay("north"), south = start_relay("south");
    const std::vector<std::string> where = {address_of("north"), address_of("south"), address,
                                            address_of("north")};
    std::vector<Process> clients;
    for (std::uint32_t part = 0; part < client_count; ++part)
      clients.push_back(start_client(part, where[part], data));
    expect_all_end_well(server, clients);
    expect_same_as_simulated();
    EXPECT_EQ(north.wait(), 0) << north.log();
    EXPECT_EQ(south.wait(), 0) << south.log();
  }

  // Returns the text between `key` and `end` at each occurrence of `key`.
  static std::vector<std::string> members(const std::string& json, const std::string& key,
                                          const std::string& end) {
    std::vector<std::string> values;
    for (std::size_t at = 0; (at = json.find(key, at)) != std::string::npos;) {
      at += key.size();
      values.push_back(json.substr(at, json.find_first_of(end, at) - at));
    }
    return values;
  }
  static void check_processes(const std::string& summary) {
    const auto executables = members(summary, "\"executable\": \"", "\"");
    const auto pids = members(summary, "\"pid\": ", ",\n");
    ASSERT_EQ(executables.size(), 5u);
    EXPECT_EQ(executables[0], std::filesystem::canonical(program("gradwire-server")).string());
    for (std::size_t k = 1; k < executables.size(); ++k)
      EXPECT_EQ(executables[k], std::filesystem::canonical(program("gradwire-client")).string());
    EXPECT_EQ(std::set<std::string>(pids.begin(), pids.end()).size(), 5u);
  }
};

TEST_P(SameRun, GivesTheBitsOfOneThread) {
  if (GetParam().way != "one_process") {
    expect_same_over_network();
  } else if (GetParam().is_network) {
    for (const char* precision : {"fp64", "fp32"})
      expect_same_in_one_process(model_config(models()[GetParam().index], precision));
  } else {
    const std::vector<Choice> all = choices();
    EXPECT_FALSE(all.empty()) << "the algorithm takes no compressor";
    for (const Choice& choice : all) {
      SCOPED_TRACE(choice.compressor);
      for (const char* precision : {"fp64", "fp32"}) expect_same_in_one_process(config(choice, precision));
      if (find_algorithm(choice.algorithm).traits.partial)
        expect_same_in_one_process(config(choice, "fp64"), {"clients.participation=0.6"});
    }
  }
}
const auto name_of = [](const ::testing::TestParamInfo<Case>& info) {
  return info.param.name + "_" + info.param.way;
};
INSTANTIATE_TEST_SUITE_P(Every, SameRun, ::testing::ValuesIn(cases(false)), name_of);

// The slow cases: the other transports.
class EverySameRun : public SameRun {};
TEST_P(EverySameRun, SlowGivesTheBitsOfOneThread) { expect_same_over_network(); }
INSTANTIATE_TEST_SUITE_P(Every, EverySameRun, ::testing::ValuesIn(cases(true)), name_of);

}  // namespace
}  // namespace gradwire
