// Sources of samples: `data` in an experiment, and --data of a client. This is the part of the engine that
// opens data files.
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
#include "engine/data/memory_data.h"
#include "engine/data/readers/csv.h"
#include "engine/data/readers/idx.h"
#include "engine/data/shared_samples.h"

namespace gradwire {

// The division of samples among clients: [problem] and [clients] of an experiment.
struct SplitSpec {
  PartitionKind partition = PartitionKind::kContiguous;
  double dirichlet_alpha = 0.3;
  std::uint32_t clients = 1;
  double test_share = 0;  // held out before the split
  std::uint64_t seed = 1;
  // If not 0, each client holds this many samples, drawn from (seed, client) among those not held out. Two
  // clients may hold the same sample. `partition` is unused.
  std::uint32_t samples_per_client = 0;
  DataReplication replication = {};  // replication of the parts of `partition`; above 1 the parts are equal
};

// The sizes of data = "synthetic".
struct SyntheticSpec {
  std::size_t samples = 1000;
  std::size_t dim = 20;
  std::uint32_t classes = 2;  // 0 for regression
  double noise = 0.1;
  std::uint64_t seed = 1;
};

// Returns the folder where `gradwire data fetch` puts data sets: data in $GRADWIRE_CACHE, else in gradwire in
// $XDG_CACHE_HOME, else in ~/.cache/gradwire. Empty if none of the variables is set.
std::filesystem::path data_cache();

// Finds `path` in `base` (the folder of the experiment file, or the working directory). Then searches each
// folder of $GRADWIRE_DATA (colon-separated) for `path` and for its last component, and then data_cache().
// Throws DataError that lists the places.
std::filesystem::path find_data(const std::filesystem::path& path, const std::filesystem::path& base);

// The options of parse_csv(), and the encoding of an earlier table if there is one.
struct TableReading {
  TableOptions options = {};
  const TableEncoding* encoding = nullptr;
};

// Reads labelled samples: digits | libsvm:PATH | csv:PATH | npy:X,Y | npz:PATH | idx:DIR | synthetic. Files
// may be compressed. If `dim` > 0, it sets the number of features, and a larger index in the file is an
// error. With `keep`, text is not kept in memory. `use` chooses among the sets of a folder. Throws DataError.
Dataset read_source(std::string_view source, const std::filesystem::path& base,
                    const SyntheticSpec& synthetic, std::size_t dim = 0, const KeepRow& keep = {},
                    SampleUse use = SampleUse::kTraining, const TableReading& table = {});

// Returns the samples that a program brings. A text is parsed as a LIBSVM file or as a table. Throws
// DataError.
Dataset read_given(const DataContent& given, std::size_t dim, const TableReading& table);

// Returns the columns and the length of a source csv:PATH, or nullopt for another source. Throws DataError.
std::optional<TableColumns> table_columns(std::string_view source, const std::filesystem::path& base,
                                          const TableOptions& options);

// Reads all samples of a text:PATH source. Keeps the bytes unchanged except for a
// byte-order mark. Throws DataError.
Windows read_text(std::string_view source, const std::filesystem::path& base, const TextReading& how);

// The row numbers of each client, after the test rows are held out. They depend only on the data and
// split.seed. With contiguous, iid and by_label the first N mod n clients have one row more. With replicas,
// parts are equal and the remainder is unused. With dirichlet, sizes vary, and each client has at least one
// row. (by_speaker is for text.)
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
  RowLists test;             // the held-out rows, divided among the clients in order
  std::size_t left_out = 0;  // training rows that no client has
};
// Divides the rows. Throws DataError if there are fewer samples than clients.
Split split_rows(const Dataset& data, const SplitSpec& spec);

// The rows of `data` and of `test` that share_samples() gives to the clients [first, end).
struct RowsOfClients {
  std::vector<bool> data, test;
};
RowsOfClients rows_of_clients(const Dataset& data, const Dataset* test, const SplitSpec& spec,
                              std::uint32_t first, std::uint32_t end);

// Returns the samples of all clients in order, as split_rows() divides them, or drawn for each client from
// all that are not held out. With `test` (problem.test), its rows are divided among the clients and nothing
// is held out.
SharedSamples share_samples(Dataset data, const Dataset* test, const SplitSpec& spec);
// Returns the same for text; labels are the predicted letters. Running text holds out its test share at the
// end, and drops the samples that overlap with it. Partitions by label throw DataError. by_speaker gives
// client i role i, and holds out the end of each role's text. It REQUIRES text that was read by speaker, and
// throws DataError if there are fewer roles than clients.
SharedSamples share_samples(const Windows& text, const Windows* test, const SplitSpec& spec);

}  // namespace gradwire
