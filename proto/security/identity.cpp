#include "proto/security/identity.h"

#include <algorithm>
#include <stdexcept>

#include "base/whole_file.h"
#include "proto/security/private_file.h"
#include "proto/wire/client_name.h"
#include "storage/atomic_file.h"
#include "storage/folder_disk.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse_identity(const std::string& what) { throw std::invalid_argument(what); }

// Returns the words of a file, which must be small; no words if it cannot be read.
std::vector<std::string> words_of(const fs::path& file) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const std::string text = whole_file(file).value_or("");
  std::vector<std::string> words;
  for (std::size_t end = 0;;) {
    const std::size_t begin = text.find_first_not_of(kBlanks, end);
    if (begin == text.npos) return words;
    end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
  }
}

std::string first_word(const fs::path& file) {
  std::vector<std::string> words = words_of(file);
  if (words.empty()) refuse_identity("--token @" + file.string() + ": the file does not exist or is empty");
  return words.front();
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
  if (!fs::exists(folder / "client"))
    refuse_identity("--identity " + folder.string() +
                    ": has no identity that a server has accepted; create one with the --token from the "
                    "operator");
  const std::vector<std::string> words = words_of(folder / "client");
  if (words.size() < 4 || words[0] != "name" || words[2] != "realm" || !check_client_name(words[1]))
    refuse_identity((folder / "client").string() +
                    ": is damaged; remove the folder and enroll again with a new --token");
  const std::string &name = words[1], &realm = words[3];
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
