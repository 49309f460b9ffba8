#include "api/client/run.h"
#include "fl_client/own_oracle.h"
#include "gradwire/client.h"

namespace gradwire {

void run_client(const OracleFactory& factory, const ClientOptions& options) {
  if (!factory.fp64 && !factory.fp32) throw BadInput("the factory of the oracle has no function");
  refuse_sources(options, "a client with an oracle of its own reads no data");
  run_client_with(options, [&](ClientSettings& settings) { settings.oracle = factory; });
}

void run_client(Oracle<double>& oracle, const ClientOptions& options) {
  run_client(factory_of(oracle), options);
}
void run_client(Oracle<float>& oracle, const ClientOptions& options) {
  run_client(factory_of(oracle), options);
}

}  // namespace gradwire
