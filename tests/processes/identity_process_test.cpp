// Tests of the commands that make identities, and of servers, relays and clients that use them over TLS.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <random>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

#include "proto/security/certificates.h"
#include "tests/processes/identity_fixture.h"
#include "tests/support/fake_client.h"

namespace gradwire {
namespace {

TEST_F(IdentityProcess, ClosesConnectionsOfAHandshakeFloodAtARelay) {
  init("identity", kClients);
  ASSERT_EQ(run("gradwire-server",
                {"enroll", "site", "--identity", "identity", "--relay", "site", "--host", "127.0.0.1"})
                .code,
            0);
  Process relay("gradwire-server",
                {"relay", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--state", "relay",
                 "--identity", "site"},
                folder.path() / "relay.log");
  const fs::path relay_address = folder.path() / "relay" / "address";
  ASSERT_TRUE(eventually([&] { return fs::exists(relay_address); })) << relay.log();
  std::string where;
  std::ifstream(relay_address) >> where;
  const auto is_limited = [&] {
    for (int k = 0; k < 100; ++k) ::close(connect_to(where));
    return relay.log().find("too many new handshakes, the last one from 127.0.0.1") != std::string::npos;
  };
  EXPECT_TRUE(eventually(is_limited)) << relay.log();
  relay.kill(SIGTERM);
  EXPECT_EQ(relay.wait(), 0) << relay.log();
}

TEST_F(IdentityProcess, ContinuesThroughARelayAfterTheServerIsKilled) {
  write_config();
  const std::vector<std::string> tokens = init("identity", kClients);
  ASSERT_EQ(tokens.size(), kClients);
  const Ended site = run("gradwire-server", {"enroll", "site", "--identity", "identity", "--relay", "site",
                                             "--host", "127.0.0.1"});
  ASSERT_EQ(site.code, 0) << site.said;

  Process server = start_server({"--identity", "identity"});
  Process relay("gradwire-server",
                {"relay", "--upstream", address, "--listen", "127.0.0.1:0", "--state", "relay", "--identity",
                 "site", "--tls-min", needs_old_tls() ? "TLS1.2" : "TLS1.3"},
                folder.path() / "relay.log");
  const fs::path relay_address = folder.path() / "relay" / "address";
  ASSERT_TRUE(eventually([&] { return fs::exists(relay_address); })) << relay.log();
  std::string relay_at;
  std::ifstream(relay_address) >> relay_at;
  std::vector<Process> clients;
  for (std::uint32_t part = 0; part < kClients; ++part)
    clients.push_back(start_known(part, part == 0 ? address : relay_at, tokens[part]));
  ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
  server.kill(SIGKILL);
  server.wait();
  server = restart_server({"--identity", "identity"});
  expect_all_end_well(server, clients);
  EXPECT_EQ(relay.wait(), 0) << relay.log();
  const std::string counts = read_file(folder.path() / "relay/metrics.prom");
  EXPECT_NE(counts.find("gradwire_connections_accepted_total "), counts.npos) << counts;
  EXPECT_NE(counts.find("gradwire_relay_has_server "), counts.npos) << counts;

  const Ended known = run("gradwire-server", {"clients", "--identity", "identity"});
  for (const char* name : {"client-0", "client-1", "client-2", "site"})
    EXPECT_NE(known.said.find(name), std::string::npos) << known.said;
  EXPECT_EQ(known.said.find("invited"), std::string::npos) << known.said;
}

TEST_F(IdentityProcess, SendsPlainTextToOtherMachinesOnlyOnRequest) {
  write_config();
  expect_refusal("gradwire-server", {"run.toml", "--listen", "0.0.0.0:0", "--state", "s"}, 2, "--insecure");
  expect_refusal("gradwire-server", {"relay", "--upstream", "127.0.0.1:1", "--listen", ":0"}, 2,
                 "--insecure");
  expect_refusal("gradwire-server", {"relay", "--upstream", "192.0.2.1:1", "--listen", "127.0.0.1:0"}, 2,
                 "--upstream 192.0.2.1:1 is another machine");
  expect_refusal("gradwire-client", {"--server", "192.0.2.1:7000"}, 2, "--insecure");
  const Ended open = run("gradwire-server", {"run.toml", "--listen", "0.0.0.0:0", "--state", "s",
                                             "--insecure", "--join-deadline-ms", "1"});
  EXPECT_NE(open.said.find("in plain text"), std::string::npos) << open.said;
}

TEST_F(IdentityProcess, RejectsImpossibleCommandsAndChangesNothing) {
  const std::vector<std::string> tokens = init("identity", 1);
  const std::string authority = read_file(folder.path() / "identity/ca.pem");
  expect_refusal("gradwire-server", {"init", "identity"}, 1, "holds an identity");
  EXPECT_EQ(read_file(folder.path() / "identity/ca.pem"), authority);
  expect_refusal("gradwire-server", {"enroll", "../x", "--identity", "identity"}, 1, "letters, digits");
  expect_refusal("gradwire-server", {"enroll", "x", "--identity", "nowhere"}, 1, "gradwire-server init");
  expect_refusal("gradwire-server", {"revoke", "x", "--identity", "identity"}, 1, "is not a client");
  expect_refusal("gradwire-server", {"enroll", "--identity", "identity"}, 2, "NAME");
  expect_refusal("gradwire-server", {"renew", "--identity", "identity", "--out", "new"}, 1, "give --host");
  const std::vector<std::string> site = {"enroll", "site", "--identity", "identity", "--relay", "site"};
  ASSERT_EQ(run("gradwire-server", site).code, 0);
  expect_refusal("gradwire-server",
                 {"enroll", "site", "--identity", "identity", "--relay", "again", "--host", "relay"}, 1,
                 "revoke it first");
  expect_refusal("gradwire-server", {"renew", "--identity", "site"}, 1, "has no certificate authority");
  write_config();
  expect_refusal("gradwire-server",
                 {"run.toml", "--listen", "0.0.0.0:0", "--state", "s", "--identity", "nowhere"}, 2,
                 "gradwire-server init");
  const std::vector<std::string> client = {"--server", "127.0.0.1:1", "--identity", "me"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), client.begin(), client.end());
    return more;
  };
  expect_refusal("gradwire-client", client, 2, "--token");
  expect_refusal("gradwire-client", with({"--token", "gw1.abc"}), 2, "cut off");
  expect_refusal("gradwire-client", with({"--token", "@nowhere"}), 2, "does not exist");
  expect_refusal("gradwire-client", with({"--token", tokens.at(0), "--id", "bob"}), 2, "client-0");
  fs::permissions(folder.path() / "me/client.key", fs::perms::others_read, fs::perm_options::add);
  expect_refusal("gradwire-client", client, 2, "has no identity that a server has accepted");
  expect_refusal("gradwire-client", with({"--token", tokens.at(0)}), 2, "chmod 600");
  fs::permissions(folder.path() / "identity/ca.key", fs::perms::others_read, fs::perm_options::add);
  expect_refusal("gradwire-server",
                 {"run.toml", "--listen", "127.0.0.1:0", "--state", "s", "--identity", "identity"}, 2,
                 "identity/ca.key: other users may read this key");
}

TEST_F(IdentityProcess, WarnsOfATokenFileReadableByOthers) {
  const fs::path file = folder.path() / "token";
  std::ofstream(file) << init("identity", 1).at(0) << "\n";
  for (const bool open : {true, false}) {
    fs::permissions(file, open ? fs::perms(0644) : fs::perms(0640));
    const Ended client = run("gradwire-client", {"--server", "127.0.0.1:1", "--identity", "me", "--token",
                                                 "@token", "--give-up-after-ms", "1"});
    EXPECT_EQ(client.code, 1) << client.said;
    const bool said = client.said.find("warning: --token @token: other users may read") != std::string::npos;
    EXPECT_EQ(said, open) << client.said;
  }
}

TEST_F(IdentityProcess, RemovesTheFilesOfAFailedCommand) {
  const auto files_in = [&](const char* name) {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder.path() / name))
      files.push_back(entry.path().filename());
    std::sort(files.begin(), files.end());
    return files;
  };
  expect_refusal("gradwire-server", {"init", "identity", "--host", "a b"}, 1, "neither a host name");
  EXPECT_FALSE(fs::exists(folder.path() / "identity"));
  // A package creates the folder, and the operator adds a file.
  fs::create_directory(folder.path() / "identity");
  std::ofstream(folder.path() / "identity/notes") << "mine";
  expect_refusal("gradwire-server", {"init", "identity", "--host", "a b"}, 1, "neither a host name");
  EXPECT_EQ(files_in("identity"), std::vector<std::string>{"notes"});
  ASSERT_EQ(init("identity", 1).size(), 1u);

  const std::vector<std::string> relay = {"enroll", "site", "--identity", "identity", "--relay", "site"};
  const auto with = [&](const char* host) {
    std::vector<std::string> more = relay;
    more.insert(more.end(), {"--host", host});
    return more;
  };
  expect_refusal("gradwire-server", with("a b"), 1, "neither a host name");
  EXPECT_FALSE(fs::exists(folder.path() / "site"));
  ASSERT_EQ(run("gradwire-server", with("127.0.0.1")).code, 0);
  const auto made = files_in("site");
  const std::string certificate = read_file(folder.path() / "site/server.pem");
  expect_refusal("gradwire-server",
                 {"enroll", "site", "--identity", "identity", "--relay", "again", "--host", "127.0.0.1"}, 1,
                 "revoke it first");
  EXPECT_FALSE(fs::exists(folder.path() / "again"));
  expect_refusal("gradwire-server",
                 {"enroll", "other", "--identity", "identity", "--relay", "site", "--host", "127.0.0.1"}, 1,
                 "holds an identity");
  EXPECT_EQ(files_in("site"), made) << "existing files are kept";
  EXPECT_EQ(read_file(folder.path() / "site/server.pem"), certificate);
}

TEST_F(IdentityProcess, RejectsOptionsWithoutEffect) {
  init("identity", 0);
  const auto enroll = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"enroll", "site", "--identity", "identity"});
    return more;
  };
  expect_refusal("gradwire-server", enroll({"--host", "h"}), 2, "--host requires --relay");
  expect_refusal("gradwire-server", enroll({"--days", "9"}), 2, "--days requires --relay");
  expect_refusal("gradwire-server", enroll({"--relay", "site", "--valid-hours", "9"}), 2, "--valid-hours");
  EXPECT_FALSE(fs::exists(folder.path() / "site"));
  const std::string why = "--insecure is for clients without --identity and --ca";
  expect_refusal("gradwire-client", {"--server", "192.0.2.1:1", "--identity", "me", "--insecure"}, 2, why);
  expect_refusal("gradwire-client", {"--server", "192.0.2.1:1", "--ca", "ca.pem", "--insecure"}, 2, why);
  write_config();
  const Ended plain = run("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "s", "--set",
                                              "server.tls_min=TLS1.2", "--join-deadline-ms", "1"});
  EXPECT_NE(plain.said.find("server.tls_min has no effect without --identity"), std::string::npos)
      << plain.said;
}

TEST_F(IdentityProcess, TellsARejectedClientTheReason) {
  write_config();
  const std::vector<std::string> tokens = init("identity", kClients);
  Process server = start_server({"--identity", "identity"});
  {
    Process first = start_known(0, address, tokens[0]);
    ASSERT_TRUE(eventually([&] { return first.log().find("joined as client") != std::string::npos; }))
        << first.log();
  }
  const auto client = [&](const std::string& own, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"--server", address, "--data", "synthetic#1/3"};
    if (!own.empty()) arguments.insert(arguments.end(), {"--identity", own});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  expect_refusal("gradwire-client", client("thief", {"--token", tokens[0]}), 2, "this one was used before");
  {  // A good token works in the same folder.
    Process other("gradwire-client", client("thief", {"--token", tokens[2]}), folder.path() / "other.log");
    EXPECT_TRUE(eventually([&] { return other.log().find("joined as client") != std::string::npos; }))
        << other.log();
  }
  expect_refusal("gradwire-client", client("", {"--ca", "identity/ca.pem"}), 2, "--token");
  ASSERT_EQ(run("gradwire-server", {"revoke", "client-0", "--identity", "identity"}).code, 0);
  expect_refusal("gradwire-client", client("me0", {}), 2, "was revoked");
  const std::vector<std::string> others = init("others", 1);
  const Ended unauthenticated = run("gradwire-client", client("outsider", {"--token", others[0]}));
  EXPECT_EQ(unauthenticated.code, 2) << unauthenticated.said;
  EXPECT_NE(unauthenticated.said.find("not from the authority"), std::string::npos) << unauthenticated.said;
  EXPECT_NE(unauthenticated.said.find("are the token and the identity in outsider from this server?"),
            std::string::npos)
      << unauthenticated.said;
  const Ended distrusts = run("gradwire-client", client("", {"--ca", "others/ca.pem"}));
  EXPECT_EQ(distrusts.code, 2) << distrusts.said;
  EXPECT_NE(distrusts.said.find("is --ca others/ca.pem from this server?"), std::string::npos)
      << distrusts.said;
  expect_refusal("gradwire-client", client("", {}), 2, "requires TLS");
  const std::string no_tls = "gradwire_connections_ended_total{reason=\"no_tls\"} ";
  EXPECT_TRUE(eventually([&] {
    const std::string counts = read_file(state() / "metrics.prom");
    const std::size_t at = counts.find(no_tls);
    return at != counts.npos && std::stoi(counts.substr(at + no_tls.size())) >= 2;
  })) << "a client that does not trust the server, and a client in plain text";
  for (const char* why : {"another key", "was revoked", "does not speak TLS; it was started without"})
    EXPECT_NE(server.log().find(why), std::string::npos) << server.log();
}

TEST_F(IdentityProcess, TellsARejectedRelayHowToEnroll) {
  write_config();
  init("identity", kClients);
  ASSERT_EQ(run("gradwire-server",
                {"enroll", "site", "--identity", "identity", "--relay", "site", "--host", "127.0.0.1"})
                .code,
            0);
  Process server = start_server({"--identity", "identity"});
  const std::vector<std::string> relay = {"relay", "--upstream", address, "--listen", "127.0.0.1:0"};
  const auto with = [&](const std::string& identity) {
    std::vector<std::string> more = relay;
    more.insert(more.end(), {"--identity", identity});
    return more;
  };
  const Ended plain = run("gradwire-server", relay);
  EXPECT_EQ(plain.code, 2) << plain.said;
  EXPECT_NE(plain.said.find("gradwire-server enroll NAME --relay"), std::string::npos) << plain.said;
  for (const char* wrong : {"identity", "nowhere"})
    expect_refusal("gradwire-server", with(wrong), 2, "gradwire-server enroll NAME --relay");
  Process revoked("gradwire-server", with("site"), folder.path() / "revoked.log");
  ASSERT_TRUE(eventually([&] { return revoked.log().find("joined the server") != std::string::npos; }))
      << revoked.log();
  ASSERT_EQ(run("gradwire-server", {"revoke", "site", "--identity", "identity"}).code, 0);
  EXPECT_EQ(revoked.wait(), 2) << revoked.log();
  EXPECT_NE(revoked.log().find("was revoked"), std::string::npos) << revoked.log();
  EXPECT_EQ(revoked.log().find("reconnecting"), std::string::npos) << revoked.log();
}

TEST_F(IdentityProcess, RenewsAnExpiringCertificateWhileTheServerRuns) {
  write_config();
  const Ended init = run("gradwire-server", {"init", "identity", "--clients", "1", "--host", "127.0.0.1",
                                             "--host", "fl.example.org", "--days", "3"});
  ASSERT_EQ(init.code, 0) << init.said;
  Process server = start_server({"--identity", "identity"});
  ASSERT_TRUE(eventually([&] {
    return server.log().find("warning: the certificate expires, ") != std::string::npos;
  })) << server.log();
  const Ended renewed = run("gradwire-server", {"renew", "--identity", "identity"});
  ASSERT_EQ(renewed.code, 0) << renewed.said;
  ASSERT_TRUE(eventually([&] { return server.log().find("using a new certificate") != std::string::npos; }))
      << server.log();
  const auto names = hosts_in_certificate(folder.path() / "identity/server.pem");
  EXPECT_EQ(names, (std::vector<std::string>{"127.0.0.1", "fl.example.org"}));
  Process client = start_known(0, address, tokens_in(init.said).at(0));
  EXPECT_TRUE(eventually([&] { return client.log().find("joined as client") != std::string::npos; }))
      << client.log();
  EXPECT_NE(server.log().find("'client-0' has enrolled, with the key "), std::string::npos) << server.log();
}

TEST_F(IdentityProcess, ServesOnlyClientsWithCertificatesIfItHasAClientAuthority) {
  write_config();
  const std::vector<std::string> tokens = init("identity", kClients);
  fs::copy_file(folder.path() / "identity/ca.pem", folder.path() / "identity/client-ca.pem");
  Process server = start_server({"--identity", "identity"});
  std::vector<Process> clients;
  for (std::uint32_t part = 0; part < kClients; ++part) {
    const std::string own = "me" + std::to_string(part), name = "client-" + std::to_string(part);
    if (part == 0) {
      clients.push_back(start_known(part, address, tokens[part]));
      ASSERT_TRUE(eventually([&] {
        return clients[0].log().find("ask its operator for certificate.pem") != std::string::npos;
      })) << clients[0].log();
    }
    ASSERT_EQ(run("gradwire-server", {"certify", name, "--identity", "identity", "--out", own}).code, 0);
    if (part > 0) clients.push_back(start_known(part, address, tokens[part]));
  }
  expect_all_end_well(server, clients);
  EXPECT_NE(server.log().find("sent no certificate"), std::string::npos) << server.log();
  EXPECT_NE(clients[0].log().find("certificate.pem is new"), std::string::npos) << clients[0].log();
}

// One process makes the identity. The others must not remove its files.
TEST_F(IdentityProcess, ExactlyOneOfManyProcessesMakesAnIdentity) {
  write_config();
  for (int turn = 0; turn < 8; ++turn) {
    const std::string where = "identity" + std::to_string(turn);
    std::vector<Process> all;
    for (int k = 0; k < 4; ++k)
      all.emplace_back("gradwire-server",
                       std::vector<std::string>{"init", where, "--clients", "2", "--host", "127.0.0.1"},
                       folder.path() / (where + "-" + std::to_string(k) + ".log"));
    std::vector<std::string> tokens;
    int made = 0;
    for (Process& one : all) {
      if (one.wait() == 0) {
        made += 1;
        tokens = tokens_in(one.log());
      } else {
        EXPECT_TRUE(one.log().find("holds an identity") != std::string::npos ||
                    one.log().find("is making an identity in it") != std::string::npos)
            << one.log();
      }
    }
    ASSERT_EQ(made, 1);
    ASSERT_EQ(tokens.size(), 2u);
    EXPECT_FALSE(fs::exists(folder.path() / where / ".unfinished"));
    const Ended list = run("gradwire-server", {"clients", "--identity", where});
    EXPECT_EQ(lines_of(list.said).size(), 2u) << list.said;
    const Ended renewed = run("gradwire-server", {"renew", "--identity", where});
    EXPECT_EQ(renewed.code, 0) << renewed.said;
    for (const std::string& token : tokens)
      EXPECT_NE(token.find(fingerprint_of(folder.path() / where / "ca.pem")), std::string::npos);
  }
}

TEST_F(IdentityProcess, RepairsAKilledInit) {
  write_config();
  std::mt19937 random(20260127);
  int killed = 0;
  for (int turn = 0; turn < 30; ++turn) {
    const std::string where = "identity" + std::to_string(turn);
    const std::vector<std::string> arguments = {"init", where, "--clients", "20", "--host", "127.0.0.1"};
    Process first("gradwire-server", arguments, folder.path() / (where + ".log"));
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 40'000);
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    first.kill(SIGKILL);
    if (first.wait() == 0) continue;
    killed += 1;
    const Ended again = run("gradwire-server", arguments);
    if (again.code != 0) {  // killed after its last step: it had printed every token
      EXPECT_NE(again.said.find("already holds an identity"), std::string::npos) << again.said;
      EXPECT_EQ(tokens_in(first.log()).size(), 20u) << first.log();
      continue;
    }
    EXPECT_EQ(tokens_in(again.said).size(), 20u) << again.said;
    expect_refusal("gradwire-server", arguments, 1, "holds an identity");
    ASSERT_EQ(run("gradwire-server", {"renew", "--identity", where}).code, 0);
  }
  EXPECT_GT(killed, 0);
}

// Starts from the files that a killed init of an earlier release leaves.
TEST_F(IdentityProcess, InitMakesMissingFilesAndKeepsAnExistingAuthority) {
  init("identity", 0);
  const fs::path place = folder.path() / "identity";
  const std::string key = read_file(place / "ca.key"), authority = read_file(place / "ca.pem");
  fs::remove_all(place / "clients");
  fs::remove(place / "server.pem");
  EXPECT_EQ(init("identity", 2).size(), 2u);
  EXPECT_EQ(read_file(place / "ca.pem"), authority);
  fs::remove(place / "ca.pem");
  fs::remove(place / "server.pem");
  EXPECT_EQ(init("identity", 2).size(), 2u);
  EXPECT_EQ(read_file(place / "ca.key"), key);
  EXPECT_TRUE(fs::exists(place / "ca.pem"));
}

TEST_F(IdentityProcess, AcceptsARelayWithoutARoleIfTheOperatorAllowsIt) {
  init("identity", 1);
  ASSERT_EQ(run("gradwire-server",
                {"enroll", "site", "--identity", "identity", "--relay", "site", "--host", "127.0.0.1"})
                .code,
            0);
  const fs::path file = folder.path() / "identity/clients/site.client";
  std::string text = read_file(file);
  const std::size_t role = text.find("role relay\n");
  ASSERT_NE(role, std::string::npos) << text;
  std::ofstream(file, std::ios::trunc) << text.erase(role, std::string("role relay\n").size());
  write_config();
  Process server = start_server({"--identity", "identity"});
  const std::vector<std::string> relay = {"relay",       "--upstream", address, "--listen",
                                          "127.0.0.1:0", "--identity", "site"};
  const Ended refused = run("gradwire-server", relay);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.said.find("gradwire-server role NAME relay"), std::string::npos) << refused.said;
  ASSERT_EQ(run("gradwire-server", {"role", "site", "relay", "--identity", "identity"}).code, 0);
  const Process admitted("gradwire-server", relay, folder.path() / "relay.log");
  EXPECT_TRUE(eventually([&] { return admitted.log().find("joined the server") != std::string::npos; }))
      << admitted.log();
  const Ended list = run("gradwire-server", {"clients", "--identity", "identity"});
  EXPECT_NE(list.said.find("enrolled as a relay"), std::string::npos) << list.said;
}

// Another process of the operator holds the lock of the list of clients.
TEST_F(IdentityProcess, ContinuesWhileTheListOfClientsIsLocked) {
  write_config();
  const std::vector<std::string> tokens = init("identity", kClients);
  Process server = start_server({"--identity", "identity", "--set", "run.rounds=3000"});
  std::vector<Process> clients;
  for (std::uint32_t part = 0; part < kClients; ++part)
    clients.push_back(start_known(part, address, tokens[part]));
  ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
  const int turn = ::open((folder.path() / "identity/clients/.turn").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(turn, LOCK_EX), 0);
  clients[1].kill(SIGKILL);
  ASSERT_EQ(clients[1].wait(), 128 + SIGKILL);
  clients[1] = start_known(1, address, "");  // logs in meanwhile
  expect_all_end_well(server, clients);
  ::close(turn);
}

}  // namespace
}  // namespace gradwire
