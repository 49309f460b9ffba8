#include <utility>

#include "api/client/run.h"
#include "engine/data/normalize.h"
#include "gradwire/client.h"
#include "samples/local_problem.h"

namespace gradwire {
namespace {

// Returns the samples of a program, all for one client. `train` is null for the training samples themselves.
Dataset samples_of(const Data& data, const RowsData& rows, const Dataset* train) {
  Dataset samples = read_given(data.content(), rows.dim,
                               {rows.table(), train != nullptr ? train->encoding.get() : nullptr});
  if (samples.encoding != nullptr && samples.encoding->has_texts())
    throw DataError(data.content().name +
                    ": has columns of text, which each client would number by its own; write numbers");
  return samples;
}

}  // namespace

void run_client(const ClientOptions& options) {
  run_client_with(options, [&](ClientSettings& settings) {
    DataChoice choice = parse_data_choice(options.data);
    choice.test = options.test;
    if (!choice.part) choice.part = settings.data.part;
    settings.data = client_data(std::move(choice));
  });
}

void run_client(const Data& train, const ClientOptions& options, const std::optional<Data>& test) {
  refuse_sources(options, "a client with samples in memory reads no data");
  run_client_with(options, [&](ClientSettings& settings) {
    settings.data.load = [&](const ExperimentSpec& experiment, const Log&) {
      const RowsData* const rows = rows_of(experiment.problem);
      if (rows == nullptr) throw DataError("this client has rows of numbers, but the problem is over texts");
      ClientDataset samples;
      samples.train = samples_of(train, *rows, nullptr);
      if (test) samples.test = samples_of(*test, *rows, &samples.train);
      Normalization each_row;
      each_row.kind = Normalize::kUnitRows;
      if (rows->normalize == each_row.kind)
        for (Dataset* data : {&samples.train, &samples.test}) normalize(*data, each_row);
      return samples;
    };
  });
}

}  // namespace gradwire
