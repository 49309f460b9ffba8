#include "fl_server/identity_commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/word_list.h"
#include "fl_server/access/server_identity.h"
#include "proto/security/certificates.h"
#include "proto/security/private_file.h"
#include "report/command_line.h"
#include "report/logger.h"
#include "report/main_frame.h"
#include "storage/folder_disk.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

struct IdentityArguments {
  std::string folder, name, relay, out, role;
  std::vector<std::string> hosts;
  std::uint32_t clients = 0;
  int days = 365, valid_hours = 7 * 24;
};

struct Command {
  std::string_view name;
  const char* summary;
  const char* footer;
  void (*add)(CLI::App&, IdentityArguments&);
  void (*run)(const IdentityArguments&);
};

void add_folder(CLI::App& app, IdentityArguments& a) {
  app.add_option("--identity", a.folder, "The folder made by gradwire-server init")
      ->type_name("DIR")
      ->required();
}
void add_name(CLI::App& app, IdentityArguments& a) {
  app.add_option("NAME", a.name, "Name of the client")->type_name("")->required();
}
void add_days(CLI::App& app, IdentityArguments& a) {
  app.add_option("--days", a.days, "Validity of the certificate in days")
      ->type_name("N")
      ->check(CLI::Range(1, 3650))
      ->capture_default_str();
}
void add_hosts(CLI::App& app, IdentityArguments& a, const std::string& otherwise = "those of this machine") {
  app.add_option("--host", a.hosts,
                 "A name or address under which clients reach it; may be repeated. Default: " + otherwise)
      ->type_name("HOST")
      ->allow_extra_args(false);
  add_days(app, a);
}
void add_token_folder(CLI::App& app, IdentityArguments& a) {
  app.add_option("--out", a.out,
                 "Folder for the tokens, one file NAME.token for each client, which only you can read")
      ->type_name("DIR");
}
void add_validity(CLI::App& app, IdentityArguments& a) {
  app.add_option("--valid-hours", a.valid_hours, "Validity of a token in hours")
      ->type_name("N")
      ->check(CLI::Range(1, 10 * 365 * 24))
      ->capture_default_str();
}

std::vector<std::string> hosts_of(const IdentityArguments& a) {
  return a.hosts.empty() ? names_of_this_machine() : a.hosts;
}

// Prints the explanation of a command whose stdout has only tokens.
void say(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

std::string date_text(std::chrono::system_clock::time_point when) {
  const std::time_t time = std::chrono::system_clock::to_time_t(when);
  std::tm date{};
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", ::gmtime_r(&time, &date));
  return text;
}
std::string date_after(std::chrono::hours hours) {
  return date_text(std::chrono::system_clock::now() + hours);
}
std::string date_of_certificate(const IdentityArguments& a) { return date_after(std::chrono::days(a.days)); }

// Gives tokens to the operator: prints them, or writes each to a file of its own in --out.
class TokenWriter {
 public:
  // `replaces` means that files of the same names are left from a command that was killed.
  TokenWriter(const IdentityArguments& a, bool replaces) : a_(a), replaces_(replaces) {
    if (!a.out.empty() && !make_folder(a.out))
      throw std::runtime_error("--out " + a.out + ": is not a folder and cannot be created");
  }
  // Removes the files again if the command fails.
  ~TokenWriter() {
    std::error_code ignored;
    if (!succeeded_)
      for (const fs::path& file : made_) fs::remove(file, ignored);
  }
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;

  void give(AllowList& clients, const std::string& name) {
    const fs::path file = fs::path(a_.out) / (name + ".token");
    if (!a_.out.empty() && !replaces_ && fs::exists(fs::symlink_status(file)))
      throw std::runtime_error(file.string() + ": exists; move it away, or choose another --out");
    const std::string token = clients.invite(name, std::chrono::hours(a_.valid_hours)).text() + "\n";
    ++count_;
    if (a_.out.empty()) {
      std::fputs(token.c_str(), stdout);
      return;
    }
    replace_private(file, token);
    made_.push_back(file);
  }

  // Says what became of the tokens, and the command that uses one. `host` is a name of the server.
  void explain(const std::string& host) {
    // Tokens are printed only once. If they cannot be printed, the command must be repeated.
    if (const std::string trouble = flush_standard_output(); !trouble.empty())
      throw std::runtime_error(trouble);
    succeeded_ = true;
    if (count_ == 0) return;
    const std::string validity =
        "enrolls one client, once, until " + date_after(std::chrono::hours(a_.valid_hours));
    if (a_.out.empty())
      say("a token is not shown again; it " + validity + " (--out DIR writes a file for each client)");
    else
      say("wrote " + made_.front().string() + (count_ > 1 ? " to " + made_.back().filename().string() : "") +
          "; a token " + validity);
    say("next, at the client: gradwire-client --server " + host +
        ":7000 --data SOURCE --identity me --token " +
        (a_.out.empty() ? "TOKEN" : "@" + made_.front().string()));
  }

 private:
  const IdentityArguments& a_;
  const bool replaces_;
  std::vector<fs::path> made_;
  std::uint32_t count_ = 0;
  bool succeeded_ = false;
};

// Returns the name of the server in its certificate that is most useful to other machines.
std::string host_of(const IdentityArguments& a) {
  const auto rank = [](const std::string& host) {
    const bool is_local = host == "localhost" || host == "127.0.0.1" || host == "::1";
    return is_local                                                                            ? 2
           : host.find_first_not_of("0123456789.") == host.npos || host.find(':') != host.npos ? 1
                                                                                               : 0;
  };
  const std::vector<std::string> hosts = hosts_in_certificate(fs::path(a.folder) / "server.pem");
  const auto best =
      std::min_element(hosts.begin(), hosts.end(),
                       [&](const std::string& x, const std::string& y) { return rank(x) < rank(y); });
  return best == hosts.end() ? "HOST" : best->find(':') == best->npos ? *best : "[" + *best + "]";
}

// An attempt to make files in a folder, as the only process. If it fails, its files are removed again, so the
// command can be repeated; older files stay. If the process is killed, a mark shows that the folder is
// unfinished.
class Attempt {
 public:
  // Throws std::runtime_error.
  Attempt(fs::path folder, const std::vector<const char*>& files) : folder_(std::move(folder)) {
    std::error_code ignored;
    makes_folder_ = !fs::exists(folder_, ignored);
    if (!make_folder(folder_))
      throw std::runtime_error(folder_.string() + ": is not a folder and cannot be created");
    lock();
    for (const char* file : files)
      if (!fs::exists(folder_ / file, ignored)) makes_.push_back(folder_ / file);
  }
  ~Attempt() {
    std::error_code ignored;
    if (!succeeded_) {
      for (const fs::path& made : makes_) fs::remove_all(made, ignored);
    }
    if (succeeded_ || !continues_) fs::remove(mark(), ignored);
    ::close(fd_);
    if (!succeeded_ && makes_folder_) fs::remove(folder_, ignored);  // fails if the folder is not empty
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // Returns true if an earlier process was killed here.
  bool continues() const { return continues_; }
  void succeeded() { succeeded_ = true; }

 private:
  static constexpr int kTries = 5;

  fs::path mark() const { return folder_ / ".unfinished"; }
  void lock() {
    for (int k = 0; k < kTries; ++k) {
      fd_ = ::open(mark().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
      if (fd_ < 0) throw std::runtime_error(mark().string() + ": " + std::strerror(errno));
      struct stat opened {
      }, named{};
      const bool is_held = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
      const bool is_there =
          ::fstat(fd_, &opened) == 0 && ::lstat(mark().c_str(), &named) == 0 && opened.st_ino == named.st_ino;
      if (is_held && is_there) {
        continues_ = opened.st_size > 0;
        if (::write(fd_, "?", 1) == 1) return;
      }
      ::close(fd_);
      if (!is_held) break;  // else the process that held the mark has just removed it
    }
    throw std::runtime_error(folder_.string() +
                             ": another gradwire-server is making an identity in it; see its output");
  }

  const fs::path folder_;
  std::vector<fs::path> makes_;
  bool makes_folder_ = false, continues_ = false, succeeded_ = false;
  int fd_ = -1;
};

void init(const IdentityArguments& a) {
  Attempt attempt(a.folder, {"ca.key", "ca.pem", "server.key", "server.pem", "clients"});
  if (!attempt.continues() && holds_identity(a.folder))
    throw std::runtime_error(
        a.folder +
        ": already holds an identity; enroll clients with gradwire-server enroll, or choose another folder");
  make_identity(a.folder, hosts_of(a), std::chrono::days(a.days));
  AllowList clients = clients_of(a.folder);
  TokenWriter tokens(a, attempt.continues());
  for (std::uint32_t k = 0; k < a.clients; ++k) tokens.give(clients, "client-" + std::to_string(k));
  tokens.explain(host_of(a));
  attempt.succeeded();
  say("made " + a.folder + ": a server for " +
      joined(hosts_in_certificate(fs::path(a.folder) / "server.pem")) + ", with a certificate until " +
      date_of_certificate(a) + "; keep a copy of its ca.key");
  say("next, here: " + (a.clients > 0
                            ? "gradwire-server FILE.toml --listen 0.0.0.0:7000 --identity " + a.folder
                            : "gradwire-server enroll NAME --identity " + a.folder));
}

void enroll(const IdentityArguments& a) {
  AllowList clients = clients_of(a.folder);
  if (a.relay.empty()) {
    TokenWriter tokens(a, false);
    tokens.give(clients, a.name);
    return tokens.explain(host_of(a));
  }
  clients.check_may_enroll(a.name);
  Attempt attempt(a.relay, {"server.key", "server.pem", "client.key", "client"});
  if (attempt.continues())  // keys that are not enrolled yet: see check_may_enroll()
    for (const char* file : {"client.key", "client"}) fs::remove(fs::path(a.relay) / file);
  make_relay_identity(a.folder, a.name, a.relay, hosts_of(a), std::chrono::days(a.days));
  attempt.succeeded();
  std::printf(
      "%s holds all that the relay needs: copy it to the relay's machine over a confidential channel\n"
      "next, there: gradwire-server relay --upstream %s:7000 --listen 0.0.0.0:7001 --identity %s\n",
      a.relay.c_str(), host_of(a).c_str(), a.relay.c_str());
}

void certify(const IdentityArguments& a) {
  fs::create_directories(a.out);
  make_client_certificate(a.folder, a.out, a.name, std::chrono::days(a.days));
  std::printf(
      "copy %s/certificate.pem and certificate.key into the client's --identity; a server requests them if "
      "its --identity holds client-ca.pem\n",
      a.out.c_str());
}

std::string standing_of(const AllowedClient& client, std::int64_t now) {
  switch (client.standing) {
    case AllowedClient::Standing::kInvited:
      return client.token_expires < now ? "invited, its token has expired" : "invited";
    case AllowedClient::Standing::kEnrolled:
      return (client.role == Login::PeerRole::kRelay ? "enrolled as a relay, key " : "enrolled, key ") +
             client.key.text();
    case AllowedClient::Standing::kRevoked: return "revoked";
  }
  return "";
}

void list_clients(const IdentityArguments& a) {
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(AllowList::Clock::now().time_since_epoch()).count();
  for (const auto& [name, client] : clients_of(a.folder).all()) {
    const std::string standing =
        client ? standing_of(*client, now) : "not accepted: " + client.error().message;
    std::printf("%-24s %s\n", printable(name).c_str(), printable(standing).c_str());
  }
}

constexpr Command kCommands[] = {
    {"init", "Makes the identity of a server: an authority, a certificate and a list of clients.",
     R"(
Example:
  gradwire-server init identity --clients 10                 prints ten tokens, one for each client
  gradwire-server init identity --clients 10 --out tokens    writes tokens/client-0.token ... client-9.token)",
     [](CLI::App& app, IdentityArguments& a) {
       app.add_option("DIR", a.folder, "The folder to make")->type_name("")->required();
       app.add_option("--clients", a.clients,
                      "Print tokens for this number of clients, client-0, client-1, ...")
           ->type_name("N")
           ->check(CLI::Range(0, 1'000'000));
       add_hosts(app, a);
       add_token_folder(app, a);
       add_validity(app, a);
     },
     init},
    {"enroll", "Adds a client: prints the token with which it enrolls once.",
     R"(
Examples:
  gradwire-server enroll hospital-7 --identity identity
  gradwire-server enroll site-3 --identity identity --relay site-3-identity --host relay.site-3.example
The client:
  gradwire-client --server HOST:7000 --data SOURCE --identity my-identity --token TOKEN)",
     [](CLI::App& app, IdentityArguments& a) {
       add_name(app, a);
       add_folder(app, a);
       add_token_folder(app, a);
       add_validity(app, a);
       CLI::Option* const relay =
           app.add_option("--relay", a.relay,
                          "For a relay: make the folder for its --identity, with a certificate")
               ->type_name("DIR");
       add_hosts(app, a);
       for (const char* of_certificate : {"--host", "--days"}) app.get_option(of_certificate)->needs(relay);
       for (const char* of_token : {"--valid-hours", "--out"})
         app.get_option(of_token)->excludes(relay);  // a relay gets a key and no token
     },
     enroll},
    {"revoke", "Revokes a client; a running server disconnects it.",
     R"(
Example:
  gradwire-server revoke hospital-7 --identity identity)",
     [](CLI::App& app, IdentityArguments& a) {
       add_name(app, a);
       add_folder(app, a);
     },
     [](const IdentityArguments& a) {
       clients_of(a.folder).revoke(a.name);
       std::printf(
           "revoked '%s': a running server disconnects it within about a second; gradwire-server enroll "
           "invites it again\n",
           a.name.c_str());
     }},
    {"role", "Sets the role of an enrolled key: client or relay.",
     R"(
Example:
  gradwire-server role site-3 relay --identity identity      for a relay that enrolled before keys had roles)",
     [](CLI::App& app, IdentityArguments& a) {
       add_name(app, a);
       app.add_option("ROLE", a.role, "client or relay")
           ->type_name("")
           ->required()
           ->check(CLI::IsMember({"client", "relay"}));
       add_folder(app, a);
     },
     [](const IdentityArguments& a) {
       clients_of(a.folder).set_role(a.name,
                                     a.role == "relay" ? Login::PeerRole::kRelay : Login::PeerRole::kClient);
       std::printf("'%s' is a %s from its next login on\n", a.name.c_str(), a.role.c_str());
     }},
    {"renew", "Makes a new certificate; a running server uses it for new connections.",
     R"(
Examples:
  gradwire-server renew --identity identity
  gradwire-server renew --identity identity --host fl.example.org      for another name than before
  gradwire-server renew --identity identity --out site-3-identity      for a relay: copy server.pem and server.key to it)",
     [](CLI::App& app, IdentityArguments& a) {
       add_folder(app, a);
       app.add_option("--out", a.out, "Output folder, in place of the --identity folder")->type_name("DIR");
       add_hosts(app, a, "those of the old certificate");
     },
     [](const IdentityArguments& a) {
       const std::string to = a.out.empty() ? a.folder : a.out;
       renew_certificate(a.folder, to, a.hosts, std::chrono::days(a.days));
       std::printf("wrote %s/server.pem and server.key for %s, valid until %s; %s\n", to.c_str(),
                   joined(hosts_in_certificate(fs::path(to) / "server.pem")).c_str(),
                   date_of_certificate(a).c_str(),
                   a.out.empty() ? "a running server uses them for new connections"
                                 : "copy both to the --identity of the relay");
     }},
    {"certify", "Makes a certificate for a client, for servers that require one.",
     R"(
Example:
  gradwire-server certify hospital-7 --identity identity --out hospital-7
  cp identity/ca.pem identity/client-ca.pem       from the server's next start on, clients need one)",
     [](CLI::App& app, IdentityArguments& a) {
       add_name(app, a);
       add_folder(app, a);
       app.add_option("--out", a.out, "The folder for certificate.pem and certificate.key")
           ->type_name("DIR")
           ->required();
       add_days(app, a);
     },
     certify},
    {"clients", "Lists the clients that may connect.",
     R"(
Example:
  gradwire-server clients --identity identity)",
     add_folder, list_clients},
};

const Command* find(std::string_view word) {
  for (const Command& command : kCommands)
    if (command.name == word) return &command;
  return nullptr;
}

}  // namespace

std::vector<std::string> identity_command_names() {
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  return names;
}

bool is_identity_command(std::string_view word) { return find(word) != nullptr; }

int identity_command(int argc, char** argv) {
  const Command& command = *find(argv[1]);
  const std::string name = "gradwire-server " + std::string(command.name);
  IdentityArguments arguments;
  CLI::App app(command.summary, name);
  app.footer(command.footer);
  command.add(app, arguments);
  Logger logger(name, log_format(argc, argv));
  if (const auto code = parse_command_line(app, argc - 1, argv + 1, logger)) return *code;
  return exit_code_of(
      [&] {
        command.run(arguments);
        return 0;
      },
      [&](const std::string& what, int) { logger.complain(what); });
}

}  // namespace gradwire
