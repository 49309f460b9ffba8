// Targets for identities: files that a person or a disk has damaged, the metrics that another program reads,
// and arbitrary bytes in place of TLS.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "fl_server/access/allow_list.h"
#include "fl_server/access/server_identity.h"
#include "fl_server/metrics/exposition.h"
#include "proto/security/certificates.h"
#include "proto/security/identity.h"
#include "proto/security/tls.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/data_files.h"

namespace gradwire::fuzz {
namespace {

namespace fs = std::filesystem;

enum Kind : unsigned { kAllowed, kIdentity, kKey, kCertificate, kCounts, kHandshake, kTampered, kKinds };

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
// Writes a file with mode 0600, like the program.
void put(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
}

// The identity of a server with one enrolled client, and the client's identity.
struct Known {
  TemporaryFolder folder;
  const fs::path server = folder.path() / "server", client = folder.path() / "client",
                 changed = folder.path() / "changed";
  std::string realm;
  SigningKey key = SigningKey::generate();
  Invitation token;  // for b

  Known() {
    make_identity(server, {"server"}, std::chrono::hours(24));
    AllowList clients = clients_of(server);
    realm = clients.realm();
    clients.enroll("a", key.public_key(), Login::PeerRole::kClient);
    token = clients.invite("b", std::chrono::hours(1));
    write_identity(client, open_identity(client, token.text()).name, realm);
    fs::create_directories(changed);
  }
};
Known& known() {
  static Known made;
  return made;
}

void check_line(const std::string& what) {
  check(!what.empty() && what.find('\n') == std::string::npos, "an error that is not one line");
}

// Reads the file of a client that logs in with the known key and the known token.
bool run_allowed(std::string_view text) {
  using Standing = AllowedClient::Standing;
  const Known& k = known();
  put(k.changed / "a.client", text);
  AllowList list(k.changed, k.realm);
  const auto all = list.all();
  check(all.size() == 1 && all.contains("a"), "other clients than the one that is there");
  const Result<AllowedClient>& client = all.at("a");  // an error if it is damaged
  const bool is_enrolled = client && client->standing == Standing::kEnrolled;
  check(list.still_admits("a") == (is_enrolled || !client), "another client is still admitted");
  const Bytes32 nonce{};
  const Login login{"a", k.key.public_key(), nonce, prove({"a", k.realm, k.key, k.token.secret}, nonce)};
  const Status admitted = list.admit(login);
  if (!admitted) check_line(admitted.error().message);
  const bool has_key = is_enrolled && client->key == login.key;
  const bool has_token =
      client && client->standing == Standing::kInvited && client->token_hash == sha256(k.token.secret);
  check(!admitted || has_key || has_token, "another client was admitted");
  check(admitted || !has_key, "the right key was refused");
  Login forged = login;
  forged.proof.signature[7] ^= std::byte{1};
  check(!list.admit(forged), "a wrong signature was taken");
  return client.has_value();
}

bool run_identity_file(std::string_view text) {
  const Known& k = known();
  fs::copy_file(k.client / "client.key", k.changed / "client.key", fs::copy_options::overwrite_existing);
  put(k.changed / "client", text);
  try {
    const Credentials credentials = open_identity(k.changed, "");
    check(!credentials.name.empty() && !credentials.realm.empty(), "an identity without a name");
    return true;
  } catch (const std::invalid_argument& error) {
    check_line(error.what());
    return false;
  }
}

bool run_key(std::string_view text) {
  const fs::path file = known().changed / "some.key";
  put(file, text);
  const Result<SigningKey> key = SigningKey::load(file);
  if (!key) check_line(key.error().message);
  return key.has_value();
}

bool run_certificate(std::string_view text) {
  const Known& k = known();
  const fs::path file = k.changed / "some.pem";
  put(file, text);
  bool taken = false;
  try {
    for (const std::string& host : hosts_in_certificate(file)) taken = !host.empty() || taken;
    (void)fingerprint_of(file);
    (void)TlsServer(file, k.server / "server.key").accept();
  } catch (const std::runtime_error& error) {
    check_line(error.what());
  } catch (const std::invalid_argument& error) {
    check_line(error.what());
  }
  return taken;
}

bool run_counts(std::string_view text) {
  const auto samples = samples_of(text);
  check(samples.size() <= text.size(), "samples from nowhere");
  for (const auto& [name, value] : samples)
    check(!name.empty() && name.find('\n') == std::string::npos, "a name of several lines");
  return !samples.empty();
}

TlsServer& tls_server() {
  static TlsServer server(known().server / "server.pem", known().server / "server.key");
  return server;
}

// Runs a client and a server over TLS, each of which sends something, while an attacker changes bytes. Input:
// the host that the client wants u8, then changes, each with place u16 and mask u8.
bool run_tampered(Cursor input) {
  TlsClient tls(TrustedServer{{}, known().realm});
  const auto client = tls.connect(input.u8() % 4 == 3 ? "other" : "server"), server = tls_server().accept();
  StreamFilter* const ends[] = {client.get(), server.get()};
  std::map<std::uint32_t, std::uint8_t> changes;
  while (!input.at_end()) {
    const std::uint32_t place = input.u16();
    changes[place] = input.u8();
  }
  const Bytes said(2000, std::byte{7});
  bool has_sent[2] = {false, false}, broken = false;
  std::uint32_t at = 0;
  Bytes heard[2];
  for (int turn = 0; turn < 40 && !broken; ++turn) {
    StreamFilter &from = *ends[turn % 2], &to = *ends[1 - turn % 2];
    if (from.ready() && !std::exchange(has_sent[turn % 2], true)) broken = !from.write(said);
    Bytes bytes(from.outgoing().begin(), from.outgoing().end());
    from.sent(bytes.size());
    for (std::byte& byte : bytes)
      if (const auto change = changes.find(at++); change != changes.end()) byte ^= std::byte{change->second};
    const Status fed = to.feed(bytes);
    if (!fed) check_line(fed.error().message);
    broken = broken || !fed;
    Bytes plain(3000);
    while (!broken && to.has_plain()) {
      const auto got = to.read(plain);
      broken = !got;
      if (got)
        heard[1 - turn % 2].insert(heard[1 - turn % 2].end(), plain.begin(),
                                   plain.begin() + static_cast<std::ptrdiff_t>(*got));
    }
  }
  for (const Bytes& what : heard)
    check(what.size() <= said.size() && std::equal(what.begin(), what.end(), said.begin()),
          "something else was heard than said");
  client->end();
  return heard[0].size() == said.size() && heard[1].size() == said.size();
}

// Feeds arbitrary bytes in place of TLS, in pieces: length (u8 * 4), and the bytes.
bool run_tls(Cursor input) {
  const auto filter = tls_server().accept();
  bool taken = false;
  while (!input.at_end()) {
    const std::size_t bytes = std::size_t{4} * input.u8();
    if (const Status fed = filter->feed(input.bytes(bytes)); !fed) {
      check_line(fed.error().message);
      return false;
    }
    check(!filter->ready() && !filter->has_plain(), "a handshake without a second message");
    check(filter->outgoing().size() < 65'536, "an answer without end");
    taken = !filter->outgoing().empty() || taken;
  }
  return taken;
}

}  // namespace

// Selects the target by the first byte.
bool run_identity(Input input) {
  Cursor cursor(input);
  const unsigned kind = cursor.u8() % kKinds;
  if (kind == kHandshake) return run_tls(cursor);
  if (kind == kTampered) return run_tampered(cursor);
  const std::string_view text = text_of(cursor.rest());
  switch (kind) {
    case kAllowed: return run_allowed(text);
    case kIdentity: return run_identity_file(text);
    case kKey: return run_key(text);
    case kCertificate: return run_certificate(text);
    default: return run_counts(text);
  }
}
std::vector<Bytes> identity_seeds() {
  std::vector<Bytes> seeds;
  const auto add = [&](Kind kind, std::string_view text) {
    Bytes seed;
    put_u8(seed, kind);
    const Bytes bytes = bytes_of(text);
    seed.insert(seed.end(), bytes.begin(), bytes.end());
    seeds.push_back(std::move(seed));
  };
  const Known& k = known();
  for (const char* name : {"a", "b"})
    add(kAllowed, contents(k.server / "clients" / (std::string(name) + ".client")));
  add(kAllowed, "standing revoked\n");
  add(kIdentity, contents(k.client / "client"));
  add(kKey, contents(k.client / "client.key"));
  add(kCertificate, contents(k.server / "server.pem"));
  add(kCounts, exposition(ServerMetrics(), {"0.2", 1, 2, 3, 4}).substr(0, 3000));
  Bytes hello;
  put_u8(hello, kHandshake);
  TlsClient client(TrustedServer{{}, k.realm});
  const auto filter = client.connect("server");
  for (Input rest = filter->outgoing(); !rest.empty();) {
    const Input piece = rest.first(std::min<std::size_t>(rest.size(), 100));
    rest = rest.subspan(piece.size());
    Bytes padded(piece.begin(), piece.end());
    put_u8(hello, static_cast<unsigned>((padded.size() + 3) / 4));
    hello.insert(hello.end(), padded.begin(), padded.end());
  }
  seeds.push_back(std::move(hello));
  add(kTampered, "");
  return seeds;
}

}  // namespace gradwire::fuzz
