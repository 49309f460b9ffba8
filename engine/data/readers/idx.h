// The IDX format of MNIST: a folder with a file of images and a file of labels, plain or compressed.
#pragma once

#include <cstdint>
#include <filesystem>

#include "engine/data/dataset.h"

namespace gradwire {

// The set to read if a folder has one for training and one for tests.
enum class SampleUse : std::uint8_t { kTraining, kTest };

// Reads train-images-idx3-ubyte and train-labels-idx1-ubyte of `folder`, or t10k-* or test-* if there is no
// train-*. With SampleUse::kTest it looks for t10k-* and test-* first. Each name may end in .gz, and "-idx"
// may be ".idx". All names may have the same prefix, as in emnist-letters-train-*. Pixels are divided by 255.
// Throws DataError.
Dataset read_idx(const std::filesystem::path& folder, const KeepRow& keep = {},
                 SampleUse use = SampleUse::kTraining);

}  // namespace gradwire
