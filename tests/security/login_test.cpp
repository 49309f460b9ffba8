// Tests of tokens as text, and of the bytes that a login signs.
#include "proto/security/login.h"

#include <gtest/gtest.h>

#include "proto/security/identity.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

Invitation invitation() { return {"hospital-7", random_secret(), to_base64(random_secret())}; }

TEST(Login, ReadsATokenBackFromItsText) {
  const Invitation written = invitation();
  const auto read = Invitation::parse(written.text());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->name, written.name);
  EXPECT_EQ(read->secret, written.secret);
  EXPECT_EQ(read->realm, written.realm);
}

TEST(Login, RejectsADamagedTokenWithoutQuotingIt) {
  const Invitation good = invitation();
  const std::string text = good.text(), secret = to_base64(good.secret);
  for (std::size_t length = 0; length < text.size() - good.name.size() + 1; ++length)
    EXPECT_FALSE(Invitation::parse(text.substr(0, length))) << length;
  for (std::string bad :
       {"gw2" + text.substr(3), "x" + text, text + " y", "gw1..." + good.name, std::string("gw1")}) {
    const auto read = Invitation::parse(bad);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().message.find(secret), std::string::npos);
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
}

TEST(Login, SignsEverythingInALogin) {
  const SigningKey key = SigningKey::generate(), other = SigningKey::generate();
  const Bytes32 nonce = random_secret(), late = random_secret();
  const auto message = login_message("realm", "name", key.public_key(), nonce);
  EXPECT_NE(message, login_message("realm2", "name", key.public_key(), nonce));
  EXPECT_NE(message, login_message("realm", "name2", key.public_key(), nonce));
  EXPECT_NE(message, login_message("realm", "name", other.public_key(), nonce));
  EXPECT_NE(message, login_message("realm", "name", key.public_key(), late));
  EXPECT_NE(message, login_message("realmn", "ame", key.public_key(), nonce)) << "lengths are also signed";
}

TEST(Login, CreatesAnIdentityOnceAndKeepsIt) {
  const TemporaryFolder folder;
  const auto me = folder.path() / "me";
  EXPECT_THROW(open_identity(me, ""), std::invalid_argument) << "nothing is there yet";
  const Invitation token = invitation();
  const Credentials made = open_identity(me, token.text());
  EXPECT_EQ(made.name, token.name);
  EXPECT_EQ(made.realm, token.realm);
  EXPECT_EQ(made.token, token.secret);
  EXPECT_TRUE(made.is_new);
  EXPECT_THROW(open_identity(me, ""), std::invalid_argument) << "no server has accepted it";
  Invitation good = token;
  good.name = "hospital-9";
  EXPECT_EQ(open_identity(me, good.text()).name, good.name) << "a refused token does not bind the folder";
  write_identity(me, token.name, token.realm);
  const Credentials later = open_identity(me, "");
  EXPECT_EQ(later.key.public_key(), made.key.public_key());
  EXPECT_FALSE(later.token);
  // A service may pass the same token at each start, as text or as a file.
  EXPECT_EQ(open_identity(me, token.text()).key.public_key(), made.key.public_key());
  const std::string file = folder.write("token", token.text() + "\n").string();
  EXPECT_EQ(open_identity(me, "@" + file).key.public_key(), made.key.public_key());
  EXPECT_FALSE(open_identity(me, "@" + file).is_new);
  EXPECT_THROW(open_identity(me, "@" + file + "2"), std::invalid_argument);
  try {
    open_identity(me, file);
    FAIL() << "a path is not a token";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(error.what(), "--token " + file + ": is a file; write --token @" + file);
  }
  EXPECT_NE(Invitation::parse("tokens/x").error().message.find("--token @FILE reads it"), std::string::npos);

  Invitation other = token;
  other.name = "hospital-8";
  EXPECT_THROW(open_identity(me, other.text()), std::invalid_argument);
  other = token;
  other.realm = to_base64(random_secret());
  EXPECT_THROW(open_identity(me, other.text()), std::invalid_argument);
  folder.write("me/client", "nonsense");
  EXPECT_THROW(open_identity(me, ""), std::invalid_argument);
}

}  // namespace
}  // namespace gradwire
