// Where samples come from: the `data` of an experiment, the --data of a client. The part of the engine that
// opens files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/client_dataset.h"
#include "engine/data/dataset.h"
#include "engine/data/readers/idx.h"
#include "engine/data/shared_samples.h"

namespace gradwire {

// How samples are divided among clients: [problem] and [clients] of an experiment.
struct SplitSpec {
  PartitionKind partition = PartitionKind::kContiguous;
  double dirichlet_alpha = 0.3;
  std::uint32_t clients = 1;
  double test_share = 0;  // held out before the split
  std::uint64_t seed = 1;
  // Not 0: each client holds so many samples, drawn from (seed, client) among those not held out; two clients
  // may hold the same. `partition` is not used.
  std::uint32_t samples_per_client = 0;
  DataReplication replication = {};  // of the parts that `partition` makes; above 1 they are equal
};

// Sizes of data = "synthetic".
struct SyntheticSpec {
  std::size_t samples = 1000;
  std::size_t dim = 20;
  std::uint32_t classes = 2;  // 0: regression
  double noise = 0.1;
  std::uint64_t seed = 1;
};

// Where `gradwire data fetch` puts data sets: data in $GRADWIRE_CACHE, else in gradwire in $XDG_CACHE_HOME,
// else in
// ~/.cache/gradwire. Empty: no variable says.
std::filesystem::path data_cache();

// Finds `path` beside `base` (the folder of the experiment file, or the working directory), then in each
// folder of $GRADWIRE_DATA (colon-separated), also by its last component alone, then in data_cache(). Throws
// DataError that lists where it looked.
std::filesystem::path find_data(const std::filesystem::path& path, const std::filesystem::path& base);

// Reads labelled samples: digits | libsvm:PATH | csv:PATH | idx:DIR | synthetic. Plain or gzipped files.
// `dim` > 0 sets the number of features; a larger index in the file is then an error. With `keep`, text is
// not kept in memory. `use` chooses among the sets of a folder. Throws DataError.
Dataset read_source(std::string_view source, const std::filesystem::path& base,
                    const SyntheticSpec& synthetic, std::size_t dim = 0, const KeepRow& keep = {},
                    SampleUse use = SampleUse::kTraining);

// All samples of a text:PATH source, bytes as they are except a byte-order mark, plain or gzipped. Throws
// DataError.
Windows read_text(std::string_view source, const std::filesystem::path& base, const TextReading& how);

// Row numbers of `data` in the part of each client, after the held-out test rows were taken; deterministic in
// split.seed. contiguous, iid, by_label: the first N mod n clients have one row more than the others; with
// copies, parts are equal and the remainder is left out. dirichlet: sizes vary, and each has a row.
// (by_speaker is for text.)
struct RowLists {  // one list per client
  std::vector<std::uint32_t> row;
  std::vector<std::uint32_t> start = {0};  // list i is [start[i], start[i + 1]) of `row`

  std::size_t size() const { return start.size() - 1; }
  std::span<const std::uint32_t> operator[](std::size_t i) const {
    return std::span(row).subspan(start[i], start[i + 1] - start[i]);
  }
  bool operator==(const RowLists&) const = default;
};
struct Split {
  RowLists train;
  RowLists test;             // the held-out rows, shared out in order, all of them used
  std::size_t left_out = 0;  // training rows that no client has
};
// Throws DataError when there are fewer samples than clients.
Split split_rows(const Dataset& data, const SplitSpec& spec);

// The rows of `data` and of `test` that share_samples() gives to the clients [first, end).
struct RowsOfClients {
  std::vector<bool> data, test;
};
RowsOfClients rows_of_clients(const Dataset& data, const Dataset* test, const SplitSpec& spec,
                              std::uint32_t first, std::uint32_t end);

// The samples of all clients, in the order of clients, as split_rows() divides them, or each client's drawn
// from all that are not held out. With `test` (problem.test), its rows are divided among the clients and
// nothing is held out.
SharedSamples share_samples(Dataset data, const Dataset* test, const SplitSpec& spec);
// The same for text; labels are the letters that are predicted. Running text holds out its test share at the
// end, and drops the samples that overlap with it; partitions by label throw DataError. by_speaker gives
// client i role i, and holds out the end of what each role says; it REQUIRES text that was read by role, and
// throws DataError when there are fewer roles than clients.
SharedSamples share_samples(const Windows& text, const Windows* test, const SplitSpec& spec);

}  // namespace gradwire
