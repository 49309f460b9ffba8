// What a server and its clients agree on before the first round: dimensions and numbers, computed from the
// experiment and from what the clients say about their data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/problems/problem.h"
#include "fl_server/net/client_table.h"
#include "proto/config/experiment_file.h"

namespace gradwire {

struct Agreed {
  Experiment experiment;  // resolved: step sizes are numbers, paths absolute
  Agreement agreement;
  std::size_t d = 0;
  std::vector<double> x0;                // shape (d)
  std::vector<double> weights;           // shape (n); empty: 1/n each
  Quality quality;                       // of the compressor
  NeededConstants needed;                // constants that theory needs
  std::optional<Smoothness> smoothness;  // those, if any; L is the mean of what the clients said
  std::vector<std::string> warnings;

  std::uint64_t samples = 0;  // for training, of all clients

  Theory theory() const {
    return {.n = experiment.clients.count,
            .d = d,
            .compressor = quality,
            .smoothness = smoothness ? &*smoothness : nullptr,
            .samples = samples,
            .rounds = experiment.run.rounds,
            .weights = weights,
            .quorum = experiment.server.quorum};
  }
};

// The constants that every client must tell about its function, because parameters of the run depend on them.
// Throws ExperimentError, before anyone joins, when theory needs a constant that no client can tell.
NeededConstants constants_to_ask(const LoadedExperiment& loaded);

// An error when no run is possible with what this client says about its data: the server refuses such a
// client before it can end the run for all.
Status check_client(const ClientInfo& info, const Experiment& experiment);

// REQUIRES: all clients of the table have joined. Throws ExperimentError or DataError (one line).
Agreed agree(const LoadedExperiment& loaded, const ClientTable& table);

// The same in a later process; `resolved` is what agree() made of the experiment. x0 is zeros: the method's
// state replaces it. Throws ConfigError or DataError when the arguments do not fit together.
Agreed agreed_before(const Experiment& asked, const Experiment& resolved, const ClientTable& table);

// The Start frame, which tells the clients what was agreed.
std::string start_frame(const Agreed& agreed, std::uint64_t run);
// The run that a frame of start_frame() names.
std::uint64_t run_of(const std::string& start_frame);

}  // namespace gradwire
