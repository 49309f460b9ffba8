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

void make_identity(const fs::path& folder, const Invitation& token) {
  if (!make_folder(folder))
    refuse_identity("--identity " + folder.string() + ": is not a folder and cannot be created");
  if (!fs::exists(folder / "client.key")) SigningKey::generate().save(folder / "client.key");
  write_identity(folder, token.name, token.realm);
}

}  // namespace

void write_identity(const fs::path& folder, const std::string& name, const std::string& realm) {
  write_whole(folder / "client", "name " + name + "\nrealm " + realm + "\n");
}

Credentials open_identity(const fs::path& folder, const std::string& token_text) {
  Result<Invitation> token = Error{""};
  if (!token_text.empty()) {
    token = Invitation::parse(token_text.front() == '@' ? first_word(token_text.substr(1)) : token_text);
    if (!token) refuse_identity("--token: " + token.error().message);
    if (!fs::exists(folder / "client")) make_identity(folder, *token);
  }
  std::ifstream in(folder / "client");
  if (!in)
    refuse_identity("--identity " + folder.string() +
                    ": has no identity; create one with the --token from the operator");
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
  Result<SigningKey> key = SigningKey::load(folder / "client.key");
  if (!key) refuse_identity(key.error().message);
  Credentials credentials{name, realm, std::move(*key), std::nullopt};
  if (token) credentials.token = token->secret;
  return credentials;
}

}  // namespace gradwire
