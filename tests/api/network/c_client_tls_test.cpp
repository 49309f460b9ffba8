// A client of gradwire.h over TLS.
#include <filesystem>
#include <string>

#include "tests/c_api/c_fixture.h"

namespace gradwire {
namespace {

class CClientOverTls : public OneCClient {};

TEST_F(CClientOverTls, LogsInOverTls) {
  const ProgramResult made = run_program("gradwire-server", folder.path(),
                                         {"init", "identity", "--clients", "1", "--host", "127.0.0.1"});
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string token = lines_of(made.out).at(0), identity = (folder.path() / "me").string();
  const Experiment experiment =
      custom({{"algorithm.name", "gd"}, {"algorithm.step_size", 0.2}, {"clients.count", 1}});
  server.emplace(experiment,
                 ServerOptions{.state = folder.path() / "state", .identity = folder.path() / "identity"});
  address = server->address();
  gradwire_options options = options_for(address.c_str());
  options.identity_dir = identity.c_str();
  options.token = token.c_str();
  CClient client(options, rows.oracle());
  EXPECT_EQ(client.run_by_steps(), GRADWIRE_DONE) << client.message();
  EXPECT_EQ(server->wait().outcome(), "finished");
}

TEST_F(CClientOverTls, NamesAServerWithoutTls) {
  start();
  const std::string ca = (folder.path() / "ca.pem").string();
  run_program("gradwire-server", folder.path(), {"init", "identity", "--host", "127.0.0.1"});
  std::filesystem::copy_file(folder.path() / "identity/ca.pem", ca);
  gradwire_options options = options_for(address.c_str());
  options.ca_file = ca.c_str();
  options.give_up_after_ms = 1;
  CClient client(options, rows.oracle());
  EXPECT_EQ(gradwire_run(client.client), GRADWIRE_E_UNREACHABLE);
  EXPECT_NE(client.message().find("TLS"), std::string::npos) << client.message();
}

}  // namespace
}  // namespace gradwire
