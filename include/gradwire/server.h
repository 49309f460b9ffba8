// A server in a program: it waits for the clients of an experiment, runs the rounds, and keeps the run in a
// folder. The same as the program gradwire-server.
//
//   gradwire::Server server(gradwire::Experiment::load("run.toml"), {.state = "run1"});
//   std::cout << server.address() << "\n";       // for run_client(), or gradwire-client --server
//   gradwire::TrainResult result = server.wait();
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "gradwire/experiment.h"
#include "gradwire/result.h"
#include "gradwire/version.h"

namespace gradwire {

// The options of gradwire-server, which errors name. Only `state` is required.
struct ServerOptions {
  // --state: the folder of the run. A server with the same experiment and folder resumes the run, also after
  // it was killed. No other server may use the folder meanwhile.
  std::filesystem::path state = {};
  std::string listen = "127.0.0.1:0";   // --listen: HOST:PORT; port 0 picks a free port
  std::filesystem::path identity = {};  // --identity: folder made by `gradwire-server init`; uses TLS
  bool insecure = false;                // --insecure: allows plain text between machines
  std::string metrics = {};             // --metrics: HOST:PORT for Prometheus; empty for no metrics
  bool fresh = false;                   // --fresh: moves the run in the folder aside, and starts a new one
  // Called after each evaluation, on the thread of the server. The run ends at this row if it returns false.
  std::function<bool(const MetricsRow&)> on_row = {};
  // Called by one thread at a time, of the server or of the constructor's caller.
  std::function<void(std::string_view line)> log = {};
};

// A running server with a thread of its own. It installs no signal handlers; it raises the limit of open
// files of the process as far as the system allows. A program may have several servers, with different
// folders.
class GRADWIRE_API Server {
 public:
  // Starts the server, and returns once it listens. Throws BadInput (one line) if the options, the experiment
  // or the folder cannot be used, and std::runtime_error if the system refuses.
  Server(const Experiment& experiment, const ServerOptions& options);
  // Calls stop() twice, and waits until the server has ended.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Returns HOST:PORT as bound. Empty if the run in the folder was over, so no client is needed.
  const std::string& address() const;

  // Waits until the run is over or stopped, and returns its result, with the rows of all servers of this
  // folder. The outcome is "stopped" and the model empty if the server was stopped before the run began.
  // Throws what ended the server otherwise: BadInput or std::runtime_error (one line).
  TrainResult wait();

  // Returns the rows so far, of all servers of this folder, at once. The outcome is "running" and the model
  // empty. After the end it does the same as wait().
  TrainResult result() const;

  // Ends the run after the round in progress; any thread may call it, and it returns at once. Clients wait
  // for the next server of this folder, unless the run is over.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradwire
