// Arrays of NumPy: X has one row for each sample, y has one label for each.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "engine/data/dataset.h"
#include "engine/data/readers/idx.h"

namespace gradwire {

// Makes samples from the bytes of two .npy files, whose names are for errors. The dimensions of X after the
// first are features, in C order. Throws DataError.
Dataset samples_of_arrays(std::string_view x, const std::string& x_name, std::string_view y,
                          const std::string& y_name, const KeepRow& keep = {});

// Reads X and y from the files of numpy.save, plain or compressed. Throws DataError.
Dataset read_npy_pair(const std::filesystem::path& x, const std::filesystem::path& y,
                      const KeepRow& keep = {});

// Makes samples from the bytes of a file of numpy.savez. It has the arrays X and y, or X_train, y_train,
// X_test and y_test, in upper or lower case. `use` chooses among them. Throws DataError.
Dataset samples_of_npz(std::string_view bytes, const std::string& file, const KeepRow& keep = {},
                       SampleUse use = SampleUse::kTraining);
Dataset read_npz(const std::filesystem::path& path, const KeepRow& keep = {},
                 SampleUse use = SampleUse::kTraining);

}  // namespace gradwire
