// Sites: a server, relays and clients as processes.
#pragma once

#include <string>
#include <vector>

#include "tests/process_fixture.h"

namespace gradwire {

class SiteTest : public ProcessTest {
 protected:
  SiteTest() { client_count = 4; }

  void write_config_of(const std::string& algorithm, int rounds, const std::string& more = "") {
    write_config(
        "name = \"sites\"\n[problem]\nkind = \"logistic\"\ndata = \"synthetic\"\nsamples = 60\ndim = 11\n"
        "regularizer = \"l2\"\nlambda = 0.01\n[clients]\ncount = 4\n[algorithm]\n" +
        algorithm + "[run]\nevaluate_every = 10\nrounds = " + std::to_string(rounds) +
        "\n[server]\ndeadline_ms = 1000\n" + more);
  }
  Process start_relay(const std::string& name, const std::string& listen = "127.0.0.1:0") {
    fs::remove(folder.path() / name / "address");
    std::vector<std::string> arguments = {"--upstream", address, "--listen", listen, "--state", name};
    if (relays_add) arguments.push_back("--aggregate");
    Process relay("gradwire-server", arguments, folder.path() / (name + ".log"));
    EXPECT_TRUE(eventually([&] { return fs::exists(folder.path() / name / "address"); })) << relay.log();
    return relay;
  }
  std::string address_of(const std::string& name) const {
    std::string text;
    std::ifstream(folder.path() / name / "address") >> text;
    return text;
  }

  bool relays_add = false;  // --aggregate
};

}  // namespace gradwire
