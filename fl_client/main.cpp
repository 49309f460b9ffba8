// gradwire-client owns the data of one client and computes on it. Everything else comes from the server.
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <optional>
#include <pthread.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "config/duration_option.h"
#include "fl_client/client.h"
#include "report/build_info.h"
#include "report/energy.h"
#include "report/logger.h"
#include "report/main_frame.h"
#include "report/option_table.h"
#include "report/service_notices.h"
#include "samples/local_problem.h"

namespace {

using gradwire::set_flag, gradwire::store_in;

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

// Stores a number of threads, and returns what is wrong with it, or "".
std::string take_threads(const std::string& text, unsigned& threads) {
  constexpr unsigned long kMost = 4096;
  char* end = nullptr;
  const unsigned long count = std::strtoul(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0' || count < 1 || count > kMost)
    return "Value " + text + " not in range 1 to " + std::to_string(kMost);
  threads = static_cast<unsigned>(count);
  return "";
}

// Gives each thread a stack of 256 KB. The default of 8 MB reserves more addresses than a small board allows.
// Sanitizers need larger stacks.
void use_small_stacks() {
#ifdef GRADWIRE_SMALL
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, std::size_t{256} << 10);
  ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
#endif
}

// Measures the energy of the machine, and logs it at the end.
class EnergyReport {
 public:
  explicit EnergyReport(const gradwire::Log& log) : log_(log) {}
  ~EnergyReport() {
    std::string text = energy_text(meter_.read());
    if (text.empty()) text = "null";
    if (!meter_.trouble().empty()) text += "; " + meter_.trouble();
    log_("energy of the machine during the run: " + text);
  }

 private:
  const gradwire::Log& log_;
  gradwire::EnergyMeter meter_;
};

int main_of(int argc, char** argv) {
  use_small_stacks();
  gradwire::Logger logger("gradwire-client", gradwire::log_format(argc, argv));
  gradwire::ClientOptions options;
  bool json = false, quiet = false, energy = false;
  const gradwire::OptionTable table{
      "gradwire-client",
      "Joins a gradwire-server and computes on this client's data.",
      gradwire::build_info(),
      kExamples,
      {{"--server", "HOST:PORT", "Address of the server, or of its relay", store_in(options.server), true},
       {"--data", "SOURCE",
        "digits, synthetic, libsvm:PATH, csv:PATH, npy:X,Y, npz:PATH, idx:DIR, text:PATH, or a PATH "
        "of the experiment's kind; #i/n after it selects part i of n",
        store_in(options.data)},
       {"--test", "SOURCE",
        "Data for the accuracy, written like --data without #i/n. Files named neither here nor in --data "
        "are not opened",
        store_in(options.test)},
       {"--identity", "DIR", "Folder with this client's identity; the server must have enrolled it. Uses TLS",
        store_in(options.identity)},
       {"--token", "TOKEN",
        "Token from the server's operator, for the first start: creates missing files of --identity. "
        "@FILE reads it from a file, so that other users of this machine do not see it",
        store_in(options.token), false, "--identity"},
       {"--ca", "FILE",
        "PEM file of certificate authorities: uses TLS, with a server that one of them certified",
        store_in(options.ca_file)},
       {"--insecure", "", "Allows plain text to another machine; only for trusted networks",
        set_flag(options.insecure)},
       {"--id", "NAME", "Name of this client: it keeps its number when it reconnects under the same name",
        store_in(options.name)},
       {"--state", "DIR",
        "Folder for this client's journal of the run, so that it can be killed and started "
        "again without the help of the server",
        store_in(options.state)},
       {"--threads", "UINT:UINT in [1 - 4096]",
        "Threads for the gradient of a network over a large batch (default: one per processor)",
        [&](const std::string& text) { return take_threads(text, options.threads); }},
       {"--give-up-after-ms", "MS=" + std::to_string(options.give_up_after.count()),
        "Exit after this time without a server",
        [&](const std::string& text) {
          std::string trouble = gradwire::trouble_of_ms(text);
          if (trouble.empty()) options.give_up_after = std::chrono::milliseconds(std::stoll(text));
          return trouble;
        }},
       {"--energy", "",
        "Log the energy of the machine during the run, if it has counters (RAPL) or sensors (hwmon)",
        set_flag(energy)},
       {"--json", "", "Log lines as JSON", set_flag(json)},
       {"--quiet", "", "Only errors", set_flag(quiet)}}};
  if (const auto code = gradwire::parse_options(table, argc, argv, logger)) return *code;
  logger.set_quiet(quiet);
  return gradwire::exit_code_of(
      [&] {
        gradwire::DataChoice choice = gradwire::parse_data_choice(options.data);
        choice.test = options.test;
        gradwire::Pulse pulse;
        gradwire::ServiceNotices manager;
        const gradwire::Log log = [&](const gradwire::LogLine& line) {
          logger.log(line);
          manager.status(line.text);
        };
        gradwire::ClientSettings settings = gradwire::settings_of(options, log);
        settings.data = gradwire::client_data(std::move(choice));
        settings.pulse = &pulse;
        std::optional<EnergyReport> report;
        if (energy) report.emplace(log);
        manager.ready();
        manager.begin_watch([&] { return pulse.is_alive(); });
        gradwire::join_and_answer(settings);
        return 0;
      },
      [&](const std::string& what, int code) { logger.fail(what, code); });
}

}  // namespace

#ifdef GRADWIRE_SMALL
// Replaces the one of the C++ library, which needs 50 KB for the readable name of a type.
void __gnu_cxx::__verbose_terminate_handler() {
  constexpr std::string_view kText = "gradwire-client: ended by an exception that nothing handles\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
  std::abort();
}
#endif

int main(int argc, char** argv) { return gradwire::run_main("gradwire-client", argc, argv, main_of); }
