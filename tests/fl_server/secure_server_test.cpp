// Tests of a server that authenticates its clients, over real sockets: TLS, logins and refusals.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>

#include "fl_client/connection.h"
#include "fl_server/access/server_identity.h"
#include "proto/security/certificates.h"
#include "proto/security/challenge.h"
#include "proto/wire/control_frame.h"
#include "tests/fl_server/tcp_fixture.h"
#include "tests/support/data_files.h"
#include "tests/support/test_tls.h"

namespace gradwire {
namespace {

// A client's end of a connection. The server runs in the thread of the test.
class Peer {
 public:
  Peer(const std::string& address, TlsClient& tls, const std::function<void()>& turn) {
    std::thread connecting([&] {
      auto made = ServerConnection::connect(address, milliseconds(2000), milliseconds(5000),
                                            [&](const std::string& host) { return tls.connect(host); });
      if (made) {
        connection_ = std::move(*made);
      } else {
        trouble_ = made.error().message;
      }
      done_ = true;
    });
    while (!done_) turn();
    connecting.join();
  }
  const std::string& trouble() const { return trouble_; }
  Status write(const std::string& frame) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(frame));
    return connection_->write(std::span(&bytes, 1));
  }

  struct Message {
    FrameType type;
    std::string header;
  };
  // Returns the next message except heartbeats, or nullopt if the connection is over.
  std::optional<Message> read(const std::function<void()>& turn) {
    for (;;) {
      while (!connection_->more_waiting()) turn();
      const auto head = connection_->read_head(0);
      if (!head) return std::nullopt;
      if (head->prefix.type == FrameType::kHeartbeat) continue;
      return Message{head->prefix.type,
                     {reinterpret_cast<const char*>(head->header.data()), head->header.size()}};
    }
  }

 private:
  std::unique_ptr<ServerConnection> connection_;
  std::string trouble_;
  std::atomic<bool> done_{false};
};

class SecureServer : public TcpTransportTest {
 protected:
  void SetUp() override {
    make_identity(place_, {"127.0.0.1"}, std::chrono::hours(1));
    identity_ = std::make_unique<ServerIdentity>(place_, kTestTls,
                                                 [this](const LogLine& line) { lines.push_back(line.text); });
    WireTimes times = patient();
    times.handshake = milliseconds(400);
    SessionManagerOptions options;
    options.clients = 2;
    options.experiment = "experiment";
    options.times = times;
    options.log = [this](const LogLine& line) { lines.push_back(line.text); };
    options.authenticator = &identity_->authenticator();
    options.bans = bans;
    options.handshakes = handshakes_;
    session_manager =
        std::make_unique<SessionManager>(options, identity_->secure(listen_on_tcp("127.0.0.1:0")));
    tls_ = std::make_unique<TlsClient>(TrustedServer{{}, realm()});
    work_ = [this] { turn(); };
  }
  void TearDown() override { session_manager.reset(); }

  std::string realm() const { return fingerprint_of(place_ / "ca.pem"); }
  Credentials enrolled(const std::string& name, Login::PeerRole role = Login::PeerRole::kClient) {
    AllowList clients = clients_of(place_);
    const SigningKey key = SigningKey::generate();
    clients.enroll(name, key.public_key(), role);
    return {name, realm(), key, std::nullopt};
  }
  static std::string hello(const Credentials& identity, std::optional<std::uint32_t> part = {}) {
    wire::Hello message;
    if (part) message.set_part_index(*part);
    if (part) message.set_part_count(2);
    message.set_protocol(kWireVersion);
    message.set_client_name(identity.name);
    const PublicKey key = identity.key.public_key();
    message.set_public_key(key.bytes.data(), key.bytes.size());
    return control_frame(FrameType::kHello, message);
  }
  // Sends a Hello as `claimed` and answers the challenge as `who`. Returns the server's answer.
  std::optional<Peer::Message> log_in(Peer& peer, const Credentials& claimed, const Credentials& identity,
                                      std::optional<std::uint32_t> part = {}) {
    EXPECT_TRUE(peer.write(hello(claimed, part)));
    auto challenge = peer.read(work_);
    if (!challenge || challenge->type != FrameType::kChallenge) return challenge;
    const auto proof = answer_challenge(std::as_bytes(std::span(challenge->header)), identity);
    EXPECT_TRUE(proof);
    EXPECT_TRUE(peer.write(*proof));
    return peer.read(work_);
  }
  static std::string error_in(const std::optional<Peer::Message>& message) {
    if (!message || message->type != FrameType::kError) return "";
    wire::ErrorMessage error;
    EXPECT_TRUE(error.ParseFromString(message->header));
    EXPECT_TRUE(error.fatal());
    EXPECT_EQ(error.retry_after_ms(), 0u) << "a retry would get the same answer: " << error.message();
    return error.message();
  }
  bool logged(const std::string& what) const {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(what) != line.npos; });
  }

  TemporaryFolder folder_;
  const std::filesystem::path place_ = folder_.path() / "identity";
  HandshakeRates handshakes_{};
  std::unique_ptr<ServerIdentity> identity_;
  std::unique_ptr<TlsClient> tls_;
  std::function<void()> work_;
};

TEST_F(SecureServer, WelcomesAnAuthenticatedClient) {
  const Credentials identity = enrolled("a");
  Peer peer(session_manager->address(), *tls_, work_);
  ASSERT_EQ(peer.trouble(), "");
  const auto answer = log_in(peer, identity, identity);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->type, FrameType::kWelcome);
}

TEST_F(SecureServer, RefusesFailedLoginsAndLogsTheReason) {
  const Credentials a = enrolled("a"), b = enrolled("b");
  const Credentials unauthenticated{"a", realm(), SigningKey::generate(), std::nullopt};
  struct Case {
    Credentials claimed, signer;
    std::string why;
  };
  const Case cases[] = {{unauthenticated, unauthenticated, "another key"},
                        {a, b, "signature"},
                        {{"nobody", realm(), b.key, std::nullopt},
                         {"nobody", realm(), b.key, std::nullopt},
                         "is not a client"}};
  for (const Case& each : cases) {
    lines.clear();
    Peer peer(session_manager->address(), *tls_, work_);
    const std::string told = error_in(log_in(peer, each.claimed, each.signer));
    EXPECT_NE(told.find(each.why), std::string::npos) << told;
    turn_for(milliseconds(60));
    EXPECT_TRUE(logged(each.why)) << each.why;
  }
}

TEST_F(SecureServer, KeepsANumberForItsOwnerUntilTheOwnerIsRevoked) {
  const Credentials a = enrolled("a"), b = enrolled("b");
  Peer owner(session_manager->address(), *tls_, work_);
  ASSERT_EQ(log_in(owner, a, a, 0)->type, FrameType::kWelcome);
  Peer other(session_manager->address(), *tls_, work_);
  const std::string told = error_in(log_in(other, b, b, 0));
  EXPECT_NE(told.find("belongs to client 'a'"), std::string::npos) << told;
  EXPECT_EQ(session_manager->table().info(0).name, "a");
  Peer again(session_manager->address(), *tls_, work_);
  EXPECT_EQ(log_in(again, a, a, 0)->type, FrameType::kWelcome) << "a new connection of the owner";
  clients_of(place_).revoke("a");
  Peer next(session_manager->address(), *tls_, work_);
  EXPECT_EQ(log_in(next, b, b, 0)->type, FrameType::kWelcome);
}

class SecureBanList : public SecureServer {
 protected:
  SecureBanList() { bans = {.first = milliseconds(1000), .longest = std::chrono::hours(1)}; }
};

TEST_F(SecureBanList, BansAuthenticatedNamesButNotClaimedOnes) {
  const Credentials a = enrolled("a"), b = enrolled("b"),
                    unauthenticated{"a", realm(), SigningKey::generate(), {}};
  for (int k = 0; k < 3; ++k) {
    Peer peer(session_manager->address(), *tls_, work_);
    ASSERT_EQ(peer.trouble(), "");
    EXPECT_NE(error_in(log_in(peer, unauthenticated, unauthenticated)), "");
  }
  EXPECT_TRUE(logged("127.0.0.1 misbehaved 3 times and is banned for 1000 ms"));
  turn_for(milliseconds(1050));
  for (int k = 0; k < 3; ++k) {
    Peer peer(session_manager->address(), *tls_, work_);
    const auto welcome = log_in(peer, a, a);
    ASSERT_TRUE(welcome);
    ASSERT_EQ(welcome->type, FrameType::kWelcome) << "turn " << k;
    EXPECT_TRUE(peer.write(hello(a)));  // not expected in this state
    EXPECT_TRUE(peer.read(work_));
  }
  EXPECT_TRUE(logged("'a' misbehaved 3 times and is banned for 1000 ms"));
  Peer banned(session_manager->address(), *tls_, work_), other(session_manager->address(), *tls_, work_);
  const auto refusal = log_in(banned, a, a);
  ASSERT_TRUE(refusal);
  wire::ErrorMessage error;
  ASSERT_TRUE(refusal->type == FrameType::kError && error.ParseFromString(refusal->header));
  EXPECT_FALSE(error.fatal());
  EXPECT_GT(error.retry_after_ms(), 0u);
  const auto welcome = log_in(other, b, b);
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->type, FrameType::kWelcome);
}

class SecureLimit : public SecureServer {
 protected:
  SecureLimit() {
    handshakes_ = {.from_address = {.per_second = 1e-6, .burst = 3},
                   .in_all = {.per_second = 1e-6, .burst = 3}};
  }
};

TEST_F(SecureLimit, ClosesConnectionsThatComeTooFastAndKeepsOpenOnes) {
  const Credentials identity = enrolled("a");
  Peer client(session_manager->address(), *tls_, work_);
  ASSERT_EQ(log_in(client, identity, identity)->type, FrameType::kWelcome);
  Peer second(session_manager->address(), *tls_, work_), third(session_manager->address(), *tls_, work_);
  EXPECT_EQ(second.trouble() + third.trouble(), "");
  for (int k = 0; k < 5; ++k) {
    Peer late(session_manager->address(), *tls_, work_);
    EXPECT_NE(late.trouble(), "");
  }
  EXPECT_TRUE(logged("too many new handshakes, the last one from 127.0.0.1"));
  EXPECT_TRUE(client.write(FakeClient::join_frame()));
  turn_for(milliseconds(50));
  EXPECT_TRUE(session_manager->table().joined(0));
}

TEST_F(SecureServer, AcceptsAProofForOneConnectionOnly) {
  const Credentials identity = enrolled("a");
  Peer first(session_manager->address(), *tls_, work_);
  ASSERT_TRUE(first.write(hello(identity)));
  const auto challenge = first.read(work_);
  ASSERT_TRUE(challenge);
  const auto proof = answer_challenge(std::as_bytes(std::span(challenge->header)), identity);
  ASSERT_TRUE(proof);
  for (int k = 0; k < 20; ++k) {
    Peer replay(session_manager->address(), *tls_, work_);
    ASSERT_TRUE(replay.write(hello(identity)));
    ASSERT_TRUE(replay.read(work_));
    ASSERT_TRUE(replay.write(*proof));
    EXPECT_NE(error_in(replay.read(work_)).find("signature"), std::string::npos);
  }
}

TEST_F(SecureServer, TellsAClientWithoutAKeyWhatItNeeds) {
  Peer peer(session_manager->address(), *tls_, work_);
  ASSERT_TRUE(peer.write(FakeClient::hello_frame("a")));
  EXPECT_NE(error_in(peer.read(work_)).find("--token"), std::string::npos);
}

TEST_F(SecureServer, AnswersAPlainTextPeerInPlainText) {
  FakeClient plain = connect();
  plain.send(FakeClient::hello_frame("a"));
  const auto refusal = plain.read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->message().find("TLS"), std::string::npos);
  EXPECT_FALSE(session_manager->table().joined(0));
}

TEST_F(SecureServer, SurvivesSilenceAndGarbage) {
  const Credentials identity = enrolled("a");
  Peer silent(session_manager->address(), *tls_, work_);
  ASSERT_TRUE(silent.write(hello(identity)));
  ASSERT_TRUE(silent.read(work_)) << "the challenge, which it does not answer";
  FakeClient garbage = connect();
  garbage.send(std::string(5000, '\x16'));
  const auto last = silent.read(work_);
  EXPECT_TRUE(!last || last->type == FrameType::kError);
  EXPECT_TRUE(garbage.is_hung_up_on());
  Peer good(session_manager->address(), *tls_, work_);
  const auto answer = log_in(good, identity, identity);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->type, FrameType::kWelcome);
}

TEST_F(SecureServer, DisconnectsARevokedClient) {
  const Credentials identity = enrolled("a");
  Peer peer(session_manager->address(), *tls_, work_);
  ASSERT_EQ(log_in(peer, identity, identity)->type, FrameType::kWelcome);
  clients_of(place_).revoke("a");
  EXPECT_NE(error_in(peer.read(work_)).find("revoked"), std::string::npos);
}

TEST_F(SecureServer, ServesTheNextClientWithANewCertificate) {
  make_server_certificate(place_, place_, {"127.0.0.1", "renewed.example"}, std::chrono::hours(1));
  turn_for(milliseconds(300));
  EXPECT_TRUE(logged("using a new certificate"));
  const Credentials identity = enrolled("a");
  Peer peer(session_manager->address(), *tls_, work_);
  ASSERT_EQ(peer.trouble(), "");
  EXPECT_EQ(log_in(peer, identity, identity)->type, FrameType::kWelcome);
}

TEST_F(SecureServer, AcceptsAKeyOnlyInItsRole) {
  const Credentials client = enrolled("a"), relay = enrolled("site", Login::PeerRole::kRelay);
  const auto as_relay = [this](const Credentials& identity) {
    Peer peer(session_manager->address(), *tls_, work_);
    wire::Relay message;
    message.set_protocol(kWireVersion);
    message.set_adds(true);
    message.set_name(identity.name);
    const PublicKey key = identity.key.public_key();
    message.set_public_key(key.bytes.data(), key.bytes.size());
    EXPECT_TRUE(peer.write(control_frame(FrameType::kRelay, message)));
    const auto challenge = peer.read(work_);
    EXPECT_TRUE(challenge && challenge->type == FrameType::kChallenge);
    const auto proof = answer_challenge(std::as_bytes(std::span(challenge->header)), identity);
    EXPECT_TRUE(peer.write(*proof));
    return peer.read(work_);
  };
  EXPECT_NE(error_in(as_relay(client)).find("may connect as a client, not as a relay"), std::string::npos);
  Peer peer(session_manager->address(), *tls_, work_);
  EXPECT_NE(error_in(log_in(peer, relay, relay)).find("may connect as a relay, not as a client"),
            std::string::npos);
  const auto joined = as_relay(relay);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->type, FrameType::kRelay);
}

// Otherwise only the first client would find out that the files of two identities are mixed up.
TEST_F(SecureServer, RefusesToStartWithACertificateOfAnotherAuthority) {
  const std::filesystem::path other = folder_.path() / "other";
  make_identity(other, {"127.0.0.1"}, std::chrono::hours(1));
  const auto overwrite = std::filesystem::copy_options::overwrite_existing;
  for (const char* file : {"server.key", "server.pem"})
    std::filesystem::copy(other / file, place_ / file, overwrite);
  try {
    const ServerIdentity mixed(place_, kTestTls, {});
    FAIL() << "it started";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("is not signed by the authority"), std::string::npos)
        << error.what();
  }
  turn_for(milliseconds(300));
  EXPECT_TRUE(logged("the new certificate cannot be used, keeping the old one"))
      << "by the server that was already running";
  std::filesystem::copy(other / "ca.key", place_ / "ca.key", overwrite);
  EXPECT_THROW(make_server_certificate(place_, place_, {"127.0.0.1"}, std::chrono::hours(1)),
               std::runtime_error)
      << "ca.key is not the key of ca.pem";
}

TEST_F(SecureServer, DoesNotBlockOnAPipeInPlaceOfACertificate) {
  std::filesystem::remove(place_ / "server.pem");
  ASSERT_EQ(::mkfifo((place_ / "server.pem").c_str(), 0600), 0);
  turn_for(milliseconds(300));
  EXPECT_TRUE(logged("server.pem: is not a file"));
  const Credentials identity = enrolled("a");
  Peer peer(session_manager->address(), *tls_, work_);
  EXPECT_EQ(log_in(peer, identity, identity)->type, FrameType::kWelcome)
      << "with the certificate from before";
}

}  // namespace
}  // namespace gradwire
