// gradwire-client owns the data of one client and computes on it. Everything else comes from the server.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "config/duration_option.h"
#include "fl_client/client.h"
#include "proto/security/identity.h"
#include "proto/wire/address.h"
#include "proto/wire/client_name.h"
#include "report/build_info.h"
#include "report/command_line.h"
#include "report/logger.h"
#include "report/main_frame.h"
#include "samples/local_problem.h"

namespace {

using gradwire::kBadUsage;

constexpr const char* kExamples = R"(
Examples:
  gradwire-client --server 10.0.0.5:7000 --data libsvm:my.txt --identity me --token TOKEN    the first time
  gradwire-client --server 10.0.0.5:7000 --data libsvm:my.txt --identity me                  later
  gradwire-client --server localhost:7000 --data 'libsvm:a9a#3/20'     part 3 of 20 (0 .. 19) of a common file
  gradwire-client --server localhost:7000 --data 'digits#0/4'          part of the data that ships with gradwire
  gradwire-client --server localhost:7000                              a problem without data
Relative paths are looked up in the working directory, then in the folders of $GRADWIRE_DATA.
Exit codes: 0 the run is over; 2 invalid command line or data, or the server refuses this client; 1 any other
error)";

// Returns whether other users may read the file. Ignores the group, because systemd's credentials seem to be
// open to it.
bool others_may_read(const std::filesystem::path& file) {
  using std::filesystem::perms;
  std::error_code error;
  const perms all = std::filesystem::status(file, error).permissions();
  return !error && all != perms::unknown && (all & perms::others_read) != perms::none;
}

int main_of(int argc, char** argv) {
  gradwire::Logger logger("gradwire-client", gradwire::log_format(argc, argv));
  gradwire::ClientOptions options;
  std::string data, test, identity, token;
  bool json = false, quiet = false, insecure = false;
  std::int64_t give_up_after_ms = options.give_up_after.count();
  CLI::App app{"Joins a gradwire-server and computes on this client's data.", "gradwire-client"};
  app.footer(kExamples);
  app.set_version_flag("--version", gradwire::build_info());
  app.add_option("--server", options.server, "Address of the server, or of its relay")
      ->type_name("HOST:PORT")
      ->required();
  app.add_option("--data", data,
                 "digits, synthetic, libsvm:PATH, csv:PATH, npy:X,Y, npz:PATH, idx:DIR, text:PATH, or a PATH "
                 "of the experiment's kind; #i/n after it selects part i of n")
      ->type_name("SOURCE");
  app.add_option(
         "--test", test,
         "Data for the accuracy, written like --data without #i/n. Files named neither here nor in --data "
         "are not opened")
      ->type_name("SOURCE");
  app.add_option("--identity", identity,
                 "Folder with this client's identity; the server must have enrolled it. Uses TLS")
      ->type_name("DIR");
  app.add_option(
         "--token", token,
         "Token from the server's operator, for the first start: creates missing files of --identity. "
         "@FILE reads it from a file, so that other users of this machine do not see it")
      ->type_name("TOKEN")
      ->needs("--identity");
  app.add_option("--ca", options.ca_file,
                 "PEM file of certificate authorities: uses TLS, with a server that one of them certified")
      ->type_name("FILE");
  app.add_flag("--insecure", insecure, "Allows plain text to another machine; only for trusted networks");
  app.add_option("--id", options.name,
                 "Name of this client: it keeps its number when it reconnects under the same name")
      ->type_name("NAME");
  app.add_option("--state", options.state,
                 "Folder for this client's journal of the run, so that it can be killed and started "
                 "again without the help of the server")
      ->type_name("DIR");
  app.add_option("--threads", options.threads,
                 "Threads for the gradient of a network over a large batch (default: one per processor)")
      ->check(CLI::Range(1u, 4096u));
  app.add_option("--give-up-after-ms", give_up_after_ms, "Exit after this time without a server")
      ->type_name("MS")
      ->check(CLI::Validator(gradwire::trouble_of_ms, "", "time"))
      ->capture_default_str();
  app.add_flag("--json", json, "Log lines as JSON");
  app.add_flag("--quiet", quiet, "Only errors");
  if (const auto code = gradwire::parse_command_line(app, argc, argv, logger)) return *code;
  if (insecure && (!identity.empty() || !options.ca_file.empty()))
    return logger.fail("--insecure is for clients without --identity and --ca, which use TLS", kBadUsage);
  options.give_up_after = std::chrono::milliseconds(give_up_after_ms);
  logger.set_quiet(quiet);
  options.log = [&](const gradwire::LogLine& line) { logger.log(line); };
  return gradwire::exit_code_of(
      [&] {
        gradwire::DataChoice choice = gradwire::parse_data_choice(data);
        choice.test = test;
        options.data = gradwire::client_data(std::move(choice));
        if (const auto address = gradwire::parse_address(options.server, gradwire::AddressUse::kToConnect);
            !address)
          return logger.fail("--server " + address.error().message, kBadUsage);
        if (token.starts_with('@') && others_may_read(token.substr(1)))
          logger.log(gradwire::LogLine::warning("--token " + token +
                                                ": other users may read this file; chmod 600 " +
                                                token.substr(1) + " fixes this"));
        if (!identity.empty()) options.credentials = gradwire::open_identity(identity, token);
        options.certificates = identity;
        if (options.credentials && !options.name.empty() && options.name != options.credentials->name)
          return logger.fail("--id '" + options.name + "': the identity is of '" + options.credentials->name +
                                 "'; leave --id out, or give another --identity",
                             kBadUsage);
        const bool plain = !options.credentials && options.ca_file.empty();
        if (plain && !insecure &&
            !gradwire::is_loopback(
                *gradwire::parse_address(options.server, gradwire::AddressUse::kToConnect)))
          return logger.fail(
              "--server " + options.server +
                  " is another machine: give --identity (and --token the first time), or --insecure",
              kBadUsage);
        if (const auto good = gradwire::check_client_name(options.name); !options.name.empty() && !good)
          return logger.fail("--id '" + options.name + "': " + good.error().message, kBadUsage);
        gradwire::run_client(options);
        return 0;
      },
      [&](const std::string& what, int code) { logger.fail(what, code); });
}

}  // namespace

int main(int argc, char** argv) { return gradwire::run_main("gradwire-client", argc, argv, main_of); }
