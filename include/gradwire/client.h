// A client of a server, in a program: it joins the run, answers until the run is over, and reconnects after
// it loses the connection. The same as the program gradwire-client, also for training code of its own.
//
//   MyOracle oracle(samples);
//   gradwire::run_client(oracle, {.server = "127.0.0.1:7000", .part = 2, .parts = 4});
//
// A program may run several clients, each on a thread of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "gradwire/bad_input.h"
#include "gradwire/data.h"
#include "gradwire/oracle.h"
#include "gradwire/version.h"

namespace gradwire {

// The options of gradwire-client, which errors name. Only `server` is required. Without `identity` and
// `ca_file`, connections are in plain text, and only to this machine unless `insecure` is set.
struct ClientOptions {
  std::string server = {};              // --server: HOST:PORT of the server, or of its relay
  std::string name = {};                // --id: the client keeps its number under the same name
  std::filesystem::path identity = {};  // --identity: folder with the client's key; uses TLS
  std::string token = {};               // --token: creates missing files of `identity`; or @FILE
  std::filesystem::path ca_file = {};   // --ca: PEM file of certificate authorities; uses TLS
  bool insecure = false;                // --insecure: allows plain text to another machine
  std::filesystem::path state = {};     // --state: folder that lets a killed client resume
  std::string data = {};                // --data: SOURCE, or SOURCE#i/n; not for an oracle of the program
  std::string test = {};                // --test: SOURCE for the accuracy
  std::uint32_t part = 0, parts = 0;    // number of this client, and n; parts = 0: the server numbers it
  unsigned threads = 0;                 // --threads, for one gradient; 0 means one per processor
  std::chrono::milliseconds give_up_after{3'600'000};  // --give-up-after-ms: time without a server
  // Ends the client soon, from any thread; run_client() then returns. Only a gradient in progress is waited
  // for, unless the oracle looks at GradientOptions::stop.
  std::stop_token stop = {};
  std::function<void(std::string_view line)> log = {};  // called by one thread at a time
};

// The run that a client joins.
struct ClientRun {
  std::size_t dim = 0;                    // d, the length of x
  std::uint32_t client = 0, clients = 0;  // number of this client, 0 .. n-1; n
  std::uint32_t rounds = 0;
};

// Makes the oracle of a client once the run is known, in the precision of the run: a precision without a
// function is refused. Called on the thread of run_client(), again for each new run of the server.
struct OracleFactory {
  std::function<std::unique_ptr<Oracle<double>>(const ClientRun&)> fp64 = {};
  std::function<std::unique_ptr<Oracle<float>>(const ClientRun&)> fp32 = {};
};

// Runs a client on the samples that `options.data` names, until the run is over or `options.stop` asks to
// stop. Throws BadInput (one line) if a restart with the same options cannot help: invalid options or data,
// or the server refuses this client. Throws std::runtime_error otherwise.
GRADWIRE_API void run_client(const ClientOptions& options);

// Run a client on an oracle of the program; the server's experiment has problem.kind = "custom". Throw as
// above. An exception of the oracle ends the client and reaches the caller; the server is told its type
// alone. `oracle` must outlive the call; one thread calls it at a time.
GRADWIRE_API void run_client(Oracle<double>& oracle, const ClientOptions& options);
GRADWIRE_API void run_client(Oracle<float>& oracle, const ClientOptions& options);
GRADWIRE_API void run_client(const OracleFactory& factory, const ClientOptions& options);

// Runs a client on samples in memory; the server's experiment has a problem over samples. Throws as above.
GRADWIRE_API void run_client(const Data& train, const ClientOptions& options,
                             const std::optional<Data>& test = std::nullopt);

}  // namespace gradwire
