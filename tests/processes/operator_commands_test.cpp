// Tests of what the commands of a server's operator say, and of the files with tokens.
#include <gtest/gtest.h>

#include "tests/processes/identity_fixture.h"

namespace gradwire {
namespace {

TEST_F(IdentityProcess, WritesATokenFileForEachClientThatOnlyTheOperatorCanRead) {
  const Ended made = run("gradwire-server",
                         {"init", "identity", "--clients", "2", "--out", "tokens", "--host", "127.0.0.1"});
  ASSERT_EQ(made.code, 0) << made.said;
  EXPECT_TRUE(tokens_in(made.said).empty()) << made.said;
  for (const char* next :
       {"wrote tokens/client-0.token to client-1.token; a token enrolls one client, once, until ",
        "gradwire-client --server 127.0.0.1:7000 --data SOURCE --identity me --token @tokens/client-0.token",
        "made identity: a server for 127.0.0.1, with a certificate until ",
        "next, here: gradwire-server FILE.toml --listen 0.0.0.0:7000 --identity identity"})
    EXPECT_NE(made.said.find(next), std::string::npos) << made.said;
  for (const char* name : {"tokens/client-0.token", "tokens/client-1.token"}) {
    EXPECT_EQ(fs::status(folder.path() / name).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(tokens_in(read_file(folder.path() / name)).size(), 1u);
  }
  const std::vector<std::string> enroll = {"enroll", "late", "--identity", "identity", "--out", "tokens"};
  EXPECT_EQ(run("gradwire-server", enroll).code, 0);
  const std::string late = read_file(folder.path() / "tokens/late.token");
  expect_refusal("gradwire-server", enroll, 1, "tokens/late.token: exists; move it away");
  EXPECT_EQ(read_file(folder.path() / "tokens/late.token"), late);
  write_config();
  Process server = start_server({"--identity", "identity"});
  Process client = start_known(0, address, "@tokens/late.token");
  EXPECT_TRUE(eventually([&] { return client.log().find("joined as client") != std::string::npos; }))
      << client.log();
  EXPECT_NE(client.log().find("enrolled as 'late'; later starts need no --token"), std::string::npos)
      << client.log();
}

TEST_F(IdentityProcess, SaysWhatEachCommandOfTheOperatorDid) {
  const std::vector<std::string> at = {"--identity", "identity"};
  const auto says = [&](std::vector<std::string> command, const std::string& text) {
    command.insert(command.end(), at.begin(), at.end());
    const Ended ended = run("gradwire-server", command);
    EXPECT_EQ(ended.code, 0) << ended.said;
    EXPECT_NE(ended.said.find(text), std::string::npos) << ended.said;
  };
  const Ended made = run("gradwire-server", {"init", "identity", "--host", "127.0.0.1"});
  EXPECT_NE(made.said.find("next, here: gradwire-server enroll NAME --identity identity"), std::string::npos)
      << made.said;
  says({"enroll", "a"}, "a token is not shown again; it enrolls one client, once, until 20");
  says({"enroll", "site", "--relay", "site", "--host", "localhost"},
       "next, there: gradwire-server relay --upstream 127.0.0.1:7000 --listen 0.0.0.0:7001 --identity site");
  says({"role", "site", "client"}, "'site' is a client from its next login on");
  says({"revoke", "a"}, "revoked 'a': a running server disconnects it");
  says({"renew"}, "wrote identity/server.pem and server.key for 127.0.0.1, valid until 20");
}

}  // namespace
}  // namespace gradwire
