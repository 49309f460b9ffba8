// From an experiment and a SOURCE to the samples of one client, or of all: part i of n is the same samples
// wherever it is read, in a simulation or by a process of its own.
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

SplitSpec split_spec(const Experiment& experiment);
SyntheticSpec synthetic_spec(const RowsData& rows, std::uint64_t seed);

// The --data of a client: SOURCE, SOURCE#i/n, #i/n or nothing.
struct DataChoice {
  std::string source;  // digits, libsvm:PATH, ..., a bare PATH; empty: the experiment's, if that is no file
  std::optional<PartNumber> part;  // absent: all samples of the source are this client's own
  std::string test{};              // of --test: where accuracy is measured, a source like that of --data
};
// Throws DataError.
DataChoice parse_data_choice(std::string_view text);

// `source` with its kind in front: a bare path is of the kind of `own`, the experiment's problem.data. Throws
// DataError.
std::string complete_source(const std::string& source, const std::string& own);

// How sources are read. A sweep keeps what it has read for its other runs.
struct Reading {
  std::function<decltype(read_source)> rows = read_source;
  std::function<decltype(read_text)> text = read_text;
};

// The samples of all clients, by problem.data and problem.test; paths are relative to `base`. For a kind
// without data: none. Throws DataError. With `mine`, the rows of other clients have no features, and are not
// looked at (drawn rows and text are read whole).
SharedSamples load_samples(const Experiment& experiment, const std::filesystem::path& base,
                           std::optional<ClientRange> mine = std::nullopt, const Reading& reading = {});

// The samples of one client. With a part number, those that load_samples gives to that client. Without one,
// the whole source, less problem.test_share of it. Opens what `choice` names and nothing else: an experiment
// comes from a server, which must not decide what this client reads. Throws DataError; its text may quote the
// data, so only this client's own log may show it.
ClientDataset load_part(const Experiment& experiment, const DataChoice& choice,
                        const std::filesystem::path& base);

// True: the experiment measures accuracy on a file, but load_part opens none, because `choice` names none.
bool leaves_out_test(const Experiment& experiment, const DataChoice& choice);

// What a client reads by load_part() from the working directory. It warns once where accuracy is not
// measured.
ClientData client_data(DataChoice choice);

}  // namespace gradwire
