// Operators and clients with identities.
#pragma once

#include <string>
#include <vector>

#include "tests/processes/process_fixture.h"

namespace gradwire {

// Returns the tokens in the output of a command, which also has an explanation.
inline std::vector<std::string> tokens_in(const std::string& said) {
  std::vector<std::string> tokens;
  for (const std::string& line : lines_of(said))
    if (line.starts_with("gw1.")) tokens.push_back(line);
  return tokens;
}

class IdentityProcess : public ProcessTest {
 protected:
  struct Ended {
    int code;
    std::string said;
  };
  Ended run(const std::string& name, const std::vector<std::string>& arguments) {
    const fs::path log = folder.path() / ("command" + std::to_string(++commands_) + ".log");
    Process process(name, arguments, log);
    const int code = process.wait();
    return {code, process.log()};
  }
  std::vector<std::string> init(const std::string& where, std::uint32_t clients) {
    const Ended ended =
        run("gradwire-server", {"init", where, "--clients", std::to_string(clients), "--host", "127.0.0.1"});
    EXPECT_EQ(ended.code, 0) << ended.said;
    return tokens_in(ended.said);
  }
  Process start_known(std::uint32_t part, const std::string& where, const std::string& token,
                      const std::string& folder_name = "me") {
    const std::string own = folder_name + std::to_string(part);
    std::vector<std::string> arguments = {
        "--server", where, "--data", "synthetic#" + std::to_string(part) + "/3", "--identity", own};
    if (!token.empty()) arguments.insert(arguments.end(), {"--token", token});
    return Process("gradwire-client", arguments, folder.path() / (own + ".log"));
  }

 private:
  int commands_ = 0;
};

}  // namespace gradwire
