// What a server and its clients agree on before the first round: from the experiment and what the clients say
// of their data to dimensions and numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/problem.h"
#include "fl_server/client_table.h"
#include "proto/experiment.h"

namespace gradwire {

struct Agreed {
  proto::Experiment experiment;  // resolved: step sizes are numbers, paths absolute
  Agreement agreement;
  std::size_t d = 0;
  std::vector<double> x0;                // shape (d)
  std::vector<double> weights;           // shape (n); empty: 1/n each
  Quality quality;                       // of the compressor
  NeededConstants needed;                // what theory looks for; then:
  std::optional<Smoothness> smoothness;  // L is the mean of what the clients said
  std::vector<std::string> warnings;

  std::uint64_t samples = 0;  // for training, of all clients

  Theory theory() const {
    return {.n = experiment.clients().count(),
            .d = d,
            .compressor = quality,
            .smoothness = smoothness ? &*smoothness : nullptr,
            .samples = samples,
            .rounds = experiment.run().rounds(),
            .weights = weights,
            .quorum = experiment.server().quorum()};
  }
};

// What the clients of a run must say of their functions for its parameters. Throws ExperimentError when
// theory needs what no client can tell: before anyone joins.
NeededConstants constants_to_ask(const LoadedExperiment& loaded);

// Whether a run can be had with what this client says of its data: one that says nonsense is to be sent away
// before it ends the run of all.
Status check_client(const ClientInfo& info, const proto::Experiment& experiment);

// REQUIRES: all clients of the table have joined. Throws ExperimentError or DataError (one line).
Agreed agree(const LoadedExperiment& loaded, const ClientTable& table);

// The same in a later process, from what agree() had made of the experiment. x0 is zeros: the method's state
// has taken its place. Throws ConfigError or DataError when these do not go together.
Agreed agreed_before(const proto::Experiment& asked, const proto::Experiment& resolved,
                     const ClientTable& table);

// The Start frame that tells the clients.
std::string start_frame(const Agreed& agreed, std::uint64_t run);
// The run that start_frame() named.
std::uint64_t run_of(const std::string& start_frame);

}  // namespace gradwire
