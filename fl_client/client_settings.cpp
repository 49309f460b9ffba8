#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "config/duration_option.h"
#include "fl_client/client.h"
#include "proto/security/identity.h"
#include "proto/wire/address.h"
#include "proto/wire/client_name.h"

namespace gradwire {
namespace {

// Returns whether other users may read the file. Ignores the group, because systemd's credentials seem to be
// open to it.
bool others_may_read(const std::filesystem::path& file) {
  using std::filesystem::perms;
  std::error_code error;
  const perms all = std::filesystem::status(file, error).permissions();
  return !error && all != perms::unknown && (all & perms::others_read) != perms::none;
}

std::optional<Credentials> credentials_of(const ClientOptions& options, const Log& log) {
  const std::string& token = options.token;
  if (options.identity.empty()) {
    if (!token.empty()) throw BadInput("--token requires --identity");
    return std::nullopt;
  }
  if (token.starts_with('@') && others_may_read(token.substr(1)) && log)
    log(LogLine::warning("--token " + token + ": other users may read this file; chmod 600 " +
                         token.substr(1) + " fixes this"));
  try {
    return open_identity(options.identity, token);
  } catch (const std::invalid_argument& error) {
    throw BadInput(error.what());
  }
}

void check_part(const ClientOptions& options) {
  if (options.parts == 0 && options.part > 0)
    throw BadInput("part " + std::to_string(options.part) + ": give the number of parts also");
  if (options.part < options.parts || options.parts == 0) return;
  throw BadInput("part " + std::to_string(options.part) + ": parts are numbered from 0, so the last of " +
                 std::to_string(options.parts) + " is " + std::to_string(options.parts - 1));
}

}  // namespace

ClientSettings settings_of(const ClientOptions& options, Log log) {
  if (options.insecure && !(options.identity.empty() && options.ca_file.empty()))
    throw BadInput("--insecure is for clients without --identity and --ca, which use TLS");
  if (const std::string trouble = trouble_of_ms(std::to_string(options.give_up_after.count()));
      !trouble.empty())
    throw BadInput("--give-up-after-ms: " + trouble);
  check_part(options);
  const auto address = parse_address(options.server, AddressUse::kToConnect);
  if (!address) throw BadInput("--server " + address.error().message);
  ClientSettings settings;
  settings.credentials = credentials_of(options, log);
  if (settings.credentials && !options.name.empty() && options.name != settings.credentials->name)
    throw BadInput("--id '" + options.name + "': the identity is of '" + settings.credentials->name +
                   "'; leave --id out, or give another --identity");
  const bool plain = !settings.credentials && options.ca_file.empty();
  if (plain && !options.insecure && !is_loopback(*address))
    throw BadInput("--server " + options.server +
                   " is another machine: give --identity (and --token the first time), or --insecure");
  if (const auto good = check_client_name(options.name); !options.name.empty() && !good)
    throw BadInput("--id '" + options.name + "': " + good.error().message);
  settings.server = options.server;
  if (options.parts > 0) settings.data.part = PartNumber{options.part, options.parts};
  settings.name = options.name;
  settings.ca_file = options.ca_file;
  settings.certificates = options.identity;
  settings.state = options.state;
  settings.give_up_after = options.give_up_after;
  settings.threads = options.threads;
  settings.stop = options.stop;
  settings.log = std::move(log);
  return settings;
}

}  // namespace gradwire
