// gradwire-client owns the data of one client and computes on it. Everything else comes from the server.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "config/duration_option.h"
#include "fl_client/client.h"
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

int main_of(int argc, char** argv) {
  gradwire::Logger logger("gradwire-client", gradwire::log_format(argc, argv));
  gradwire::ClientOptions options;
  bool json = false, quiet = false;
  std::int64_t give_up_after_ms = options.give_up_after.count();
  CLI::App app{"Joins a gradwire-server and computes on this client's data.", "gradwire-client"};
  app.footer(kExamples);
  app.set_version_flag("--version", gradwire::build_info());
  app.add_option("--server", options.server, "Address of the server, or of its relay")
      ->type_name("HOST:PORT")
      ->required();
  app.add_option("--data", options.data,
                 "digits, synthetic, libsvm:PATH, csv:PATH, npy:X,Y, npz:PATH, idx:DIR, text:PATH, or a PATH "
                 "of the experiment's kind; #i/n after it selects part i of n")
      ->type_name("SOURCE");
  app.add_option(
         "--test", options.test,
         "Data for the accuracy, written like --data without #i/n. Files named neither here nor in --data "
         "are not opened")
      ->type_name("SOURCE");
  app.add_option("--identity", options.identity,
                 "Folder with this client's identity; the server must have enrolled it. Uses TLS")
      ->type_name("DIR");
  app.add_option(
         "--token", options.token,
         "Token from the server's operator, for the first start: creates missing files of --identity. "
         "@FILE reads it from a file, so that other users of this machine do not see it")
      ->type_name("TOKEN")
      ->needs("--identity");
  app.add_option("--ca", options.ca_file,
                 "PEM file of certificate authorities: uses TLS, with a server that one of them certified")
      ->type_name("FILE");
  app.add_flag("--insecure", options.insecure,
               "Allows plain text to another machine; only for trusted networks");
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
  options.give_up_after = std::chrono::milliseconds(give_up_after_ms);
  logger.set_quiet(quiet);
  return gradwire::exit_code_of(
      [&] {
        gradwire::DataChoice choice = gradwire::parse_data_choice(options.data);
        choice.test = options.test;
        gradwire::ClientSettings settings =
            gradwire::settings_of(options, [&](const gradwire::LogLine& line) { logger.log(line); });
        settings.data = gradwire::client_data(std::move(choice));
        gradwire::join_and_answer(settings);
        return 0;
      },
      [&](const std::string& what, int code) { logger.fail(what, code); });
}

}  // namespace

int main(int argc, char** argv) { return gradwire::run_main("gradwire-client", argc, argv, main_of); }
