// Tests of the list of enrolled clients.
#include "fl_server/access/allow_list.h"

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/support/data_files.h"

namespace gradwire {
namespace {

class Allowed : public ::testing::Test {
 protected:
  Allowed() : realm_(to_base64(random_secret())), list_(folder_.path(), realm_) {}

  Login login(const Credentials& client) {
    Login login{client.name, client.key.public_key(), random_secret(), {}};
    login.proof = prove(client, login.nonce);
    return login;
  }
  // Returns the reason why the login fails, or an empty string.
  std::string refusal(const Login& login) {
    const Status status = list_.admit(login);
    return status ? "" : status.error().message;
  }
  Credentials invited(const std::string& name, std::chrono::hours validity = std::chrono::hours(1)) {
    const Invitation token = list_.invite(name, validity);
    return {name, realm_, SigningKey::generate(), token.secret};
  }

  TemporaryFolder folder_;
  const std::string realm_;
  AllowList list_;
};

TEST_F(Allowed, EnrollsInvitedClientOnceAndThenAcceptsItsKey) {
  Credentials client = invited("a");
  EXPECT_FALSE(list_.still_admits("a"));
  EXPECT_EQ(refusal(login(client)), "");
  EXPECT_TRUE(list_.still_admits("a"));
  EXPECT_EQ(refusal(login(client)), "") << "it may still send its token";
  client.token.reset();
  EXPECT_EQ(refusal(login(client)), "");
  // a list of another process, or of a restarted server
  AllowList other(folder_.path(), realm_);
  EXPECT_TRUE(other.admit(login(client)));
}

TEST_F(Allowed, AcceptsTokenForOneKeyOnly) {
  const Credentials client = invited("a");
  Credentials thief{"a", realm_, SigningKey::generate(), client.token};
  EXPECT_EQ(refusal(login(client)), "");
  EXPECT_EQ(refusal(login(thief)),
            "'a' enrolled with another key: a token is valid once, and this one was used before; the "
            "operator must revoke it and enroll it again");
  thief.token.reset();
  EXPECT_EQ(refusal(login(thief)),
            "'a' enrolled with another key; the operator must revoke it and enroll it again");
}

TEST_F(Allowed, RefusesEnrolmentWithoutTheRightToken) {
  Credentials client = invited("a");
  const auto token = client.token;
  client.token.reset();
  EXPECT_NE(refusal(login(client)).find("--token"), std::string::npos);
  client.token = random_secret();
  EXPECT_NE(refusal(login(client)).find("does not have the last token"), std::string::npos);
  const Credentials newer = invited("a");  // the older token is void
  client.token = token;
  EXPECT_NE(refusal(login(client)), "");
  EXPECT_EQ(refusal(login(newer)), "");
  EXPECT_NE(refusal(login({"nobody", realm_, SigningKey::generate(), token})).find("is not a client"),
            std::string::npos);
}

TEST_F(Allowed, RefusesExpiredToken) {
  const Credentials client = invited("a", std::chrono::hours(-1));
  EXPECT_NE(refusal(login(client)).find("expired"), std::string::npos);
}

TEST_F(Allowed, RefusesRevokedClientUntilItIsInvitedAgain) {
  const Credentials client = invited("a");
  EXPECT_EQ(refusal(login(client)), "");
  EXPECT_THROW(list_.invite("a", std::chrono::hours(1)), std::runtime_error) << "it is enrolled";
  AllowList operators(folder_.path(), realm_);
  operators.revoke("a");
  EXPECT_FALSE(list_.still_admits("a"));
  EXPECT_NE(refusal(login(client)).find("revoked"), std::string::npos);
  const Credentials again = invited("a");
  EXPECT_NE(refusal(login(client)), "") << "its old key is still refused";
  EXPECT_EQ(refusal(login(again)), "");
  EXPECT_THROW(list_.revoke("nobody"), std::runtime_error);
}

TEST_F(Allowed, RefusesReplayedOrForgedLogin) {
  const Credentials client = invited("a"), other = invited("b");
  ASSERT_EQ(refusal(login(client)), "");
  ASSERT_EQ(refusal(login(other)), "");
  for (int k = 0; k < 2000; ++k) {
    const Login good = login(client);
    Login bad = good;
    bad.nonce = random_secret();  // an old proof with a new nonce of the server
    EXPECT_NE(refusal(bad), "");
    bad = good;
    bad.name = "b";  // another client's name with its own key
    EXPECT_NE(refusal(bad), "");
    bad = good;
    bad.key = other.key.public_key();  // another client's key with its own signature
    EXPECT_NE(refusal(bad), "");
    bad = good;
    bad.proof.signature[static_cast<std::size_t>(k) % 64] ^= std::byte{1};
    EXPECT_NE(refusal(bad), "");
    AllowList elsewhere(folder_.path(), realm_ + "x");  // a proof for another server
    EXPECT_FALSE(elsewhere.admit(good));
  }
}

// Verifying a signature is most of the server's cost of a login.
TEST_F(Allowed, VerifiesSignaturesOnlyOfEnrolledKeysAndValidTokens) {
  const Credentials client = invited("a"),
                    unauthenticated{"a", realm_, SigningKey::generate(), random_secret()};
  const auto unsigned_login = [this](const Credentials& claimed) {
    Login bad = login(claimed);
    bad.proof.signature = {};
    return refusal(bad);
  };
  const std::string wrong = "the signature of 'a' is wrong";
  EXPECT_NE(unsigned_login({"nobody", realm_, SigningKey::generate(), {}}).find("is not a client"),
            std::string::npos);
  EXPECT_NE(unsigned_login(unauthenticated).find("does not have the last token"), std::string::npos);
  EXPECT_EQ(unsigned_login(client), wrong);
  EXPECT_FALSE(list_.still_admits("a")) << "it has not enrolled";
  EXPECT_EQ(refusal(login(client)), "") << "its token is still valid";
  EXPECT_EQ(unsigned_login(client), wrong);
  EXPECT_NE(unsigned_login(unauthenticated).find("another key"), std::string::npos);
  list_.revoke("a");
  EXPECT_NE(unsigned_login(client).find("revoked"), std::string::npos);
}

TEST_F(Allowed, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"../a", "a/b", ".hidden", "", "a b", "."}) {
    EXPECT_THROW(list_.invite(name, std::chrono::hours(1)), std::runtime_error) << name;
    EXPECT_THROW(list_.revoke(name), std::runtime_error) << name;
    EXPECT_NE(refusal(login({name, realm_, SigningKey::generate(), random_secret()})), "") << name;
  }
}

TEST_F(Allowed, RefusesClientWhoseFileIsDamaged) {
  const Credentials client = invited("a");
  ASSERT_EQ(refusal(login(client)), "");
  for (const char* text :
       {"", "standing", "standing enrolled\n", "standing enrolled\nkey short\n", "standing maybe\n",
        "standing invited\ntoken_hash x\ntoken_expires y\n", "\n\n\n"}) {
    folder_.write("a.client", text);
    const std::string why = refusal(login(client));
    EXPECT_NE(why.find("a.client"), std::string::npos) << text << ": " << why;
    EXPECT_EQ(why.find('\n'), std::string::npos);
  }
}

TEST_F(Allowed, ListsClientsWhoseFilesAreDamaged) {
  ASSERT_EQ(refusal(login(invited("a"))), "");
  (void)invited("b");
  folder_.write("c.client", "standing maybe\n");
  folder_.write("notes", "no client");
  const auto all = list_.all();
  ASSERT_EQ(all.size(), 3u);
  ASSERT_TRUE(all.at("a") && all.at("b"));
  EXPECT_EQ(all.at("a")->standing, AllowedClient::Standing::kEnrolled);
  EXPECT_EQ(all.at("b")->standing, AllowedClient::Standing::kInvited);
  ASSERT_FALSE(all.at("c"));
  EXPECT_NE(all.at("c").error().message.find("c.client: is damaged; revoke the client"), std::string::npos)
      << all.at("c").error().message;
}

TEST_F(Allowed, EnrollsManyClientsAtOnceAndCountsNoTokenTwice) {
  const Credentials client = invited("a");
  std::vector<std::thread> threads;
  std::atomic<int> admitted{0};
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&] {
      AllowList own(folder_.path(), realm_);
      Credentials mine{"a", realm_, SigningKey::generate(), client.token};
      Login attempt{mine.name, mine.key.public_key(), random_secret(), {}};
      attempt.proof = prove(mine, attempt.nonce);
      admitted += own.admit(attempt) ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted, 1);
}

TEST_F(Allowed, AcceptsKeyOnlyInItsRole) {
  const Credentials client = invited("a");
  Login as_relay = login(client);
  as_relay.role = Login::PeerRole::kRelay;
  EXPECT_NE(refusal(as_relay).find("'a' may connect as a client, not as a relay"), std::string::npos)
      << "a token belongs to a client";
  ASSERT_EQ(refusal(login(client)), "");
  as_relay = login(client);
  as_relay.role = Login::PeerRole::kRelay;
  EXPECT_NE(refusal(as_relay).find("gradwire-server role NAME relay"), std::string::npos);

  const Credentials relay{"site", realm_, SigningKey::generate(), std::nullopt};
  list_.enroll("site", relay.key.public_key(), Login::PeerRole::kRelay);
  EXPECT_NE(refusal(login(relay)).find("'site' may connect as a relay, not as a client"), std::string::npos);
  as_relay = login(relay);
  as_relay.role = Login::PeerRole::kRelay;
  EXPECT_EQ(refusal(as_relay), "");
}

TEST_F(Allowed, TreatsFileWithoutRoleAsClientUntilTheOperatorChangesIt) {
  const Credentials client{"site", realm_, SigningKey::generate(), std::nullopt};
  folder_.write("site.client", "standing enrolled\nkey " + client.key.public_key().text() + "\n");
  Login as_relay = login(client);
  as_relay.role = Login::PeerRole::kRelay;
  EXPECT_EQ(refusal(login(client)), "");
  EXPECT_NE(refusal(as_relay), "");
  list_.set_role("site", Login::PeerRole::kRelay);
  EXPECT_EQ(refusal(as_relay), "");
  EXPECT_NE(refusal(login(client)), "");
  list_.set_role("site", Login::PeerRole::kClient);
  EXPECT_EQ(refusal(login(client)), "");
  EXPECT_THROW(list_.set_role("b", Login::PeerRole::kRelay), std::runtime_error) << "it has not enrolled";
}

// A process that holds the lock, or pipes in place of files, must not block the network thread.
TEST_F(Allowed, NeverWaitsInALogin) {
  const Credentials known = invited("a"), fresh = invited("b");
  ASSERT_EQ(refusal(login(known)), "");
  const int turn = ::open((folder_.path() / ".turn").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(turn, LOCK_EX), 0);
  EXPECT_EQ(refusal(login(known)), "") << "an enrolled client changes nothing";
  const Status status = list_.admit(login(fresh));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kSystem) << "it may retry";
  EXPECT_NE(status.error().message.find("it holds .turn"), std::string::npos) << status.error().message;
  ::close(turn);
  EXPECT_EQ(refusal(login(fresh)), "");
  ASSERT_EQ(::mkfifo((folder_.path() / "c.client").c_str(), 0600), 0);
  const Credentials piped{"c", realm_, SigningKey::generate(), std::nullopt};
  EXPECT_NE(refusal(login(piped)).find("c.client: is not a file"), std::string::npos);
  EXPECT_TRUE(list_.still_admits("c")) << "a disk error disconnects no client";
}

}  // namespace
}  // namespace gradwire
