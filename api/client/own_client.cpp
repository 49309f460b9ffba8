#include "api/client/run.h"
#include "engine/data/normalize.h"
#include "fl_client/own_oracle.h"
#include "gradwire/client.h"

namespace gradwire {
namespace {

void refuse_sources(const ClientOptions& options, const std::string& reason) {
  for (const auto& [option, source] : {std::pair("--data", options.data), {"--test", options.test}})
    if (!source.empty())
      throw BadInput(std::string(option) + " '" + source + "': " + reason + "; leave it out");
}

}  // namespace

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

void run_client(const Data& train, const ClientOptions& options, const std::optional<Data>& test) {
  refuse_sources(options, "a client with samples in memory reads no data");
  run_client_with(options, [&](ClientSettings& settings) {
    settings.data.load = [&](const ExperimentSpec& experiment, const Log&) {
      ClientDataset samples;
      samples.train = train.content();
      if (test) samples.test = test->content();
      const RowsData* const rows = rows_of(experiment.problem);
      if (rows == nullptr) throw DataError("this client has rows of numbers, but the problem is over texts");
      Normalization each_row;
      each_row.kind = Normalize::kUnitRows;
      if (rows->normalize == each_row.kind)
        for (Dataset* data : {&samples.train, &samples.test}) normalize(*data, each_row);
      return samples;
    };
  });
}

}  // namespace gradwire
