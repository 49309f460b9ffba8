#include "proto/security/identity.h"

#include <fstream>
#include <stdexcept>

#include "proto/security/private_file.h"
#include "proto/wire/client_name.h"
#include "storage/atomic_file.h"
#include "storage/folder_disk.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse_identity(const std::string& what) { throw std::invalid_argument(what); }

std::string first_word(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  if (!in || !(in >> word))
    refuse_identity("--token @" + file.string() + ": the file does not exist or is empty");
  return word;
}

void make_client_key(const fs::path& folder) {
  if (!make_folder(folder))
    refuse_identity("--identity " + folder.string() + ": is not a folder and cannot be created");
  if (!fs::exists(folder / "client.key")) SigningKey::generate().save(folder / "client.key");
}

SigningKey load_client_key(const fs::path& folder) {
  Result<SigningKey> key = SigningKey::load(folder / "client.key");
  if (!key) refuse_identity(key.error().message);
  return std::move(*key);
}

Invitation parse_token(const std::string& text) {
  if (std::error_code error; text.front() != '@' && fs::is_regular_file(text, error))
    refuse_identity("--token " + text + ": is a file; write --token @" + text);
  Result<Invitation> token = Invitation::parse(text.front() == '@' ? first_word(text.substr(1)) : text);
  if (!token) refuse_identity("--token: " + token.error().message);
  return std::move(*token);
}

}  // namespace

void write_identity(const fs::path& folder, const std::string& name, const std::string& realm) {
  write_whole(folder / "client", "name " + name + "\nrealm " + realm + "\n");
}

Credentials open_identity(const fs::path& folder, const std::string& token_text) {
  std::optional<Invitation> token;
  if (!token_text.empty()) token = parse_token(token_text);
  if (token && !fs::exists(folder / "client")) {
    make_client_key(folder);
    return {token->name, token->realm, load_client_key(folder), token->secret, true};
  }
  std::ifstream in(folder / "client");
  if (!in)
    refuse_identity("--identity " + folder.string() +
                    ": has no identity that a server has accepted; create one with the --token from the "
                    "operator");
  std::string name_word, name, realm_word, realm;
  in >> name_word >> name >> realm_word >> realm;
  if (name_word != "name" || realm_word != "realm" || realm.empty() || !check_client_name(name))
    refuse_identity((folder / "client").string() +
                    ": is damaged; remove the folder and enroll again with a new --token");
  if (token && (token->name != name || token->realm != realm))
    refuse_identity(
        "--identity " + folder.string() + ": belongs to '" + name + "'" +
        (token->name == name ? " for another server than the --token" : ", not to '" + token->name + "'") +
        "; choose another folder");
  Credentials credentials{name, realm, load_client_key(folder), std::nullopt};
  if (token) credentials.token = token->secret;
  return credentials;
}

}  // namespace gradwire
