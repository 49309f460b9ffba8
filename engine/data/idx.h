// The IDX format of MNIST: a folder with a file of images and a file of labels, plain or gzipped.
#pragma once

#include <filesystem>

#include "engine/dataset.h"

namespace gradwire {

// Reads train-images-idx3-ubyte and train-labels-idx1-ubyte of `folder`, or t10k-* when there is no train-*.
// Each may end in .gz, and "-idx" may be ".idx". Pixels are divided by 255. Throws DataError.
Dataset read_idx(const std::filesystem::path& folder, const KeepRow& keep = {});

}  // namespace gradwire
