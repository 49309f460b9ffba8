// Tests of keys, hashes and their text forms, compared with published vectors.
#include "proto/security/keys.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/support/data_files.h"

namespace gradwire {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t k = 0; k < hex.size(); k += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(k, 2), nullptr, 16)));
  return bytes;
}

TEST(Keys, EncodesBase64AsTheStandardWithoutPadding) {
  const std::pair<const char*, const char*> vectors[] = {
      {"", ""}, {"f", "Zg"}, {"fo", "Zm8"}, {"foo", "Zm9v"}, {"foob", "Zm9vYg"}, {"\xff\xef", "_-8"}};
  for (const auto& [bytes, text] : vectors) {
    const std::string plain = bytes;
    EXPECT_EQ(to_base64(bytes_of(plain)), text);
    const auto back = from_base64(text);
    ASSERT_TRUE(back) << text;
    EXPECT_TRUE(std::equal(back->begin(), back->end(), bytes_of(plain).begin(), bytes_of(plain).end()));
  }
}

TEST(Keys, GivesEachValueOneText) {
  for (const std::string& text :
       {std::string("Z"), std::string("Zh"), std::string("Zm9"), std::string("Zg=="), std::string("Zm9v\n"),
        std::string("a+b/"), std::string(1, '\0')})
    EXPECT_FALSE(from_base64(text)) << text;
}

TEST(Keys, HashesAndMacsMatchTheirStandards) {
  const auto digest = sha256(bytes_of("abc"));  // FIPS 180-2
  EXPECT_TRUE(
      same_secret(digest, from_hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")));
  Bytes32 key{};  // RFC 4231, test case 2; HMAC pads its short key with zeros
  std::copy_n(bytes_of("Jefe").begin(), 4, key.begin());
  EXPECT_TRUE(same_secret(mac(key, bytes_of("what do ya want for nothing?")),
                          from_hex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")));
}

TEST(Keys, VerifiesASignatureOnlyForItsKeyAndMessage) {
  PublicKey key;  // RFC 8032, 7.1, test 2
  const auto raw = from_hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  std::copy(raw.begin(), raw.end(), key.bytes.begin());
  Signature signature;
  const auto signed_bytes = from_hex(
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
      "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  std::copy(signed_bytes.begin(), signed_bytes.end(), signature.begin());
  const std::vector<std::byte> message = from_hex("72");
  EXPECT_TRUE(verify(key, message, signature));
  EXPECT_FALSE(verify(key, from_hex("73"), signature));
  EXPECT_FALSE(verify(SigningKey::generate().public_key(), message, signature));
  for (std::size_t k = 0; k < signature.size(); ++k) {
    Signature damaged = signature;
    damaged[k] ^= std::byte{1};
    EXPECT_FALSE(verify(key, message, damaged)) << k;
  }
  const SigningKey own = SigningKey::generate();
  EXPECT_TRUE(verify(own.public_key(), message, own.sign(message)));
}

TEST(Keys, RejectsAFileThatOthersMayRead) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "my.key";
  const SigningKey key = SigningKey::generate();
  key.save(file);
  namespace fs = std::filesystem;
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const auto back = SigningKey::load(file);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->public_key(), key.public_key());
  EXPECT_THROW(key.save(file), std::runtime_error) << "it is there";

  fs::permissions(file, fs::perms::group_read, fs::perm_options::add);
  const auto refused = SigningKey::load(file);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("chmod 600"), std::string::npos) << refused.error().message;
  EXPECT_EQ(refused.error().message.find("PRIVATE"), std::string::npos);
}

TEST(Keys, ReadsAndWritesTheFormOfTheStandard) {
  // RFC 8410, 10.3 and 10.1
  const std::string text =
      "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
      "-----END PRIVATE KEY-----\n";
  const TemporaryFolder folder;
  namespace fs = std::filesystem;
  const auto file = folder.write("standard.key", text), copy = folder.path() / "copy.key";
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  const auto key = SigningKey::load(file);
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(key->public_key().text(), "Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE");
  key->save(copy);
  std::ifstream in(copy);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text);
}

TEST(Keys, NamesTheFileIfItIsNotAKey) {
  const TemporaryFolder folder;
  namespace fs = std::filesystem;
  const std::string contents[] = {"", "hello",
                                  "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"};
  for (const std::string& text : contents) {
    const auto file = folder.write("bad.key", text);
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    const auto key = SigningKey::load(file);
    ASSERT_FALSE(key) << text;
    EXPECT_EQ(key.error().message.find(file.string()), 0u) << key.error().message;
    EXPECT_EQ(key.error().message.find('\n'), std::string::npos);
  }
  EXPECT_FALSE(SigningKey::load(folder.path() / "absent.key"));
  EXPECT_FALSE(SigningKey::load(folder.path()));
}

}  // namespace
}  // namespace gradwire
