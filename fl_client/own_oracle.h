// The oracle that a program brings to its client, for problem.kind = "custom".
#pragma once

#include <cstdint>
#include <memory>

#include "config/experiment_spec.h"
#include "fl_client/client.h"
#include "gradwire/client.h"

namespace gradwire {

// The oracle in the precision of the run; both are null if the program brings none.
struct OwnOracle {
  std::unique_ptr<Oracle<double>> fp64;
  std::unique_ptr<Oracle<float>> fp32;

  std::uint64_t sample_count() const { return fp64 ? fp64->sample_count() : fp32 ? fp32->sample_count() : 0; }
};

// Thrown if this client cannot take part in the server's experiment. Its text quotes no data, so the server
// may be told.
class UnfitClient : public ClientRefused {
 public:
  using ClientRefused::ClientRefused;
};

// Makes the oracle of client number `client`. Returns none if the experiment has functions of its own and the
// factory is null. Throws UnfitClient, and what the factory throws.
OwnOracle make_own_oracle(const OracleFactory* factory, const ExperimentSpec& experiment,
                          std::uint32_t client);

// Returns a factory that gives this oracle. It must outlive the factory and what it makes.
OracleFactory factory_of(Oracle<double>& oracle);
OracleFactory factory_of(Oracle<float>& oracle);

}  // namespace gradwire
