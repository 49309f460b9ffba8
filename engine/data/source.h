// Where samples come from: the `data` of an experiment, the --data of a client. The part of the engine that
// opens files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/dataset.h"
#include "engine/part.h"

namespace gradwire {

// How samples are divided among clients: [problem] and [clients] of an experiment.
struct SplitSpec {
  PartitionKind partition = PartitionKind::kContiguous;
  double dirichlet_alpha = 0.3;
  std::uint32_t clients = 1;
  double test_share = 0;  // held out before the split
  std::uint64_t seed = 1;
};

// Sizes of data = "synthetic".
struct SyntheticSpec {
  std::size_t samples = 1000;
  std::size_t dim = 20;
  std::uint32_t classes = 2;  // 0: regression
  double noise = 0.1;
  std::uint64_t seed = 1;
};

// Finds `path` beside `base` (the folder of the experiment file, or the working directory), then in each
// folder of $GRADWIRE_DATA (colon-separated), also by its last component alone. Throws DataError that lists
// where it looked.
std::filesystem::path find_data(const std::filesystem::path& path, const std::filesystem::path& base);

// Reads labelled samples: digits | libsvm:PATH | csv:PATH | idx:DIR | synthetic. Plain or gzipped files.
// `dim` > 0 sets the number of features; a larger index in the file is then an error. Throws DataError.
Dataset read_source(std::string_view source, const std::filesystem::path& base,
                    const SyntheticSpec& synthetic, std::size_t dim = 0);

// All samples of a text:PATH source, bytes as they are, plain or gzipped. Throws DataError.
Windows read_text(std::string_view source, const std::filesystem::path& base, TextForm form,
                  std::size_t context);

// Row numbers of `data` for each client, after the held-out test rows were taken; deterministic in
// split.seed. contiguous, iid, by_label: floor(N/n) rows each, the remainder is dropped. dirichlet: sizes
// vary, nobody is empty.
struct Split {
  std::vector<std::vector<std::uint32_t>> train;  // one list per client
  std::vector<std::vector<std::uint32_t>> test;   // the held-out rows, shared out in order, all of them used
};
// Throws DataError when there are fewer samples than clients.
Split split_rows(const Dataset& data, const SplitSpec& spec);

// split_rows and select_rows for all clients. With `test` (problem.test), its rows are divided among the
// clients and nothing is held out.
std::vector<Part> make_parts(const Dataset& data, const Dataset* test, const SplitSpec& spec);
// The same for text; labels are the letters that are predicted. Running text holds out its test share at the
// end, and drops the samples that overlap with it; partitions by label throw DataError.
std::vector<Part> make_parts(const Windows& text, const Windows* test, const SplitSpec& spec);

}  // namespace gradwire
