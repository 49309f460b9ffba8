// Loads the samples of one client, or of all, for an experiment and a SOURCE. Part i of n has the same
// samples in a simulation and in a separate client process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/core/message.h"
#include "engine/data/readers/source.h"
#include "samples/client_data.h"

namespace gradwire {

SplitSpec split_spec(const ExperimentSpec& experiment);
SyntheticSpec synthetic_spec(const RowsData& rows, std::uint64_t seed);

// The --data of a client: SOURCE, SOURCE#i/n, #i/n or nothing.
struct DataChoice {
  // One of digits, libsvm:PATH, ..., a bare PATH. If empty, the experiment's source, unless that is a file.
  std::string source;
  std::optional<PartNumber> part;  // empty if this client has all samples of the source
  std::string test{};              // --test: the source on which accuracy is measured, written like --data
};
// Parses the value of --data. Throws DataError.
DataChoice parse_data_choice(std::string_view text);

// Returns `source` with its kind in front. A bare path gets the kind of `own`, the experiment's problem.data.
// Throws DataError.
std::string complete_source(const std::string& source, const std::string& own);

// The readers of sources. A sweep caches what they read for its other runs.
struct Reading {
  std::function<decltype(read_source)> rows = read_source;
  std::function<decltype(read_text)> text = read_text;
};

// Loads the samples of all clients, by problem.data and problem.test; paths are relative to `base`. Returns
// no samples for a problem type without data. With `mine`, the rows of other clients have no features and are
// not parsed; drawn rows, text and rows that are normalised by sums are read whole. `given` is the
// preprocessing of a model; otherwise it comes from the data. Throws DataError.
SharedSamples load_samples(const ExperimentSpec& experiment, const std::filesystem::path& base,
                           std::optional<ClientRange> mine = std::nullopt, const Reading& reading = {},
                           const Preprocessing& given = {});

// Loads the samples of one client. It does not normalise them if problem.normalize needs the sums of all
// clients: the session applies their map (fl_client/client_session.h). With a part number, these are
// otherwise the samples that load_samples() gives to that client. Without one, they are the whole source,
// without the share problem.test_share. Opens only what `choice` names: the experiment comes from a server,
// which must not decide what this client reads. Throws DataError; its text may quote the data, so only this
// client's own log may show it.
ClientDataset load_part(const ExperimentSpec& experiment, const DataChoice& choice,
                        const std::filesystem::path& base);

// Returns whether the experiment measures accuracy on test data that load_part() does not read, because
// `choice` does not name them.
bool leaves_out_test(const ExperimentSpec& experiment, const DataChoice& choice);

// Returns a ClientData that reads with load_part(), relative to the working directory. It warns once if
// accuracy is not measured.
ClientData client_data(DataChoice choice);

}  // namespace gradwire
