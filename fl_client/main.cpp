// gradwire-client: owns the data of one client and computes on it; everything else comes from the server.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "fl_client/client.h"
#include "proto/address.h"
#include "proto/build_info.h"

namespace {

constexpr int kBadUsage = 2;
constexpr int kFailed = 1;

constexpr const char* kExamples = R"(
Examples:
  gradwire-client --server 10.0.0.5:7000 --data libsvm:my.txt --id hospital-7    its own file
  gradwire-client --server 10.0.0.5:7000 --data 'libsvm:a9a#3/20'                part 3 of 20 (0 .. 19) of a common file
  gradwire-client --server 10.0.0.5:7000 --data 'digits#0/4'                     part of the data that ships with gradwire
  gradwire-client --server 10.0.0.5:7000                                         a problem without data
Relative paths are looked up in the working directory, then in the folders of $GRADWIRE_DATA.)";

int complain(const std::string& message, int code) {
  std::fprintf(stderr, "gradwire-client: %s\n", message.c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  gradwire::ClientOptions options;
  std::string data;
  bool quiet = false;
  std::int64_t give_up_after_ms = options.give_up_after.count();
  CLI::App app{"Joins a gradwire-server and computes on this client's data.", "gradwire-client"};
  app.footer(kExamples);
  app.set_version_flag("--version", gradwire::build_info());
  app.add_option("--server", options.server, "HOST:PORT of the server")->required();
  app.add_option("--data", data,
                 "digits, synthetic, libsvm:PATH, csv:PATH, idx:DIR, or a PATH of the experiment's kind; "
                 "#i/n behind it: "
                 "part i of n");
  app.add_option("--id", options.name,
                 "Name of this client: with it, it gets its old number when it comes back");
  app.add_option(
      "--state", options.state,
      "Folder in which this client remembers its part of the run, so that it can be killed and started "
      "again without the help of the server");
  app.add_option("--give-up-after-ms", give_up_after_ms, "End when there was no server for so long")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--quiet", quiet, "Only errors");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return complain(std::string(error.what()) + "; see gradwire-client --help", kBadUsage);
  }
  options.give_up_after = std::chrono::milliseconds(give_up_after_ms);
  if (!quiet) options.log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  try {
    options.data = gradwire::parse_data_choice(data);
    if (const auto address = gradwire::parse_address(options.server, gradwire::AddressUse::kToConnect);
        !address)
      return complain("--server " + address.error().message, kBadUsage);
    gradwire::run_client(options);
    return 0;
  } catch (const gradwire::DataError& error) {
    return complain(error.what(), kBadUsage);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}
