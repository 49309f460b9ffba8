// The LIBSVM text format: one sample per line, "LABEL INDEX:VALUE INDEX:VALUE ...". Indices ascend from 1.
// Values that are not given are zero.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/data/dataset.h"
#include "engine/data/readers/bytes.h"

namespace gradwire {

// A number of columns that is always accepted. Above it, a largest index over kColumnsPerValue times the
// number of values in the file counts as a mistake unless `dim` allows it. A model needs memory for every
// column.
inline constexpr std::uint64_t kUnquestionedColumns = 1u << 20, kColumnsPerValue = 64;

// Parses a LIBSVM text. `file` is for errors. Index 1 is column 0. If `dim` > 0, it sets the number of
// columns; otherwise the largest index does. An index above dim or above 2^32-2 is an error, and so is one
// above the limit of kColumnsPerValue. '#' starts a comment. Blank lines are skipped. A blank may stand
// between a colon and its value. Throws DataError.
Dataset parse_libsvm(std::string_view text, const std::string& file, std::size_t dim = 0);
// Parses a file without keeping it in memory, or some of its rows.
Dataset parse_libsvm(ByteStream& text, const std::string& file, std::size_t dim, const KeepRow& keep);

}  // namespace gradwire
