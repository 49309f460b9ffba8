// The LIBSVM text format: one sample per line, "LABEL INDEX:VALUE INDEX:VALUE ...", indices ascending from 1,
// values that are not named are zero.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/data/dataset.h"
#include "engine/data/readers/bytes.h"

namespace gradwire {

// The number of columns that needs no proof. Above it, a largest index of more than kColumnsPerValue times
// the values in the file is taken for a mistake unless `dim` allows it: a model has memory for every column.
inline constexpr std::uint64_t kUnquestionedColumns = 1u << 20, kColumnsPerValue = 64;

// `file` is for the errors' text. Index 1 is column 0. `dim` > 0 sets the number of columns, else it is the
// largest index; an index above dim or above 2^32-2 is an error, and so is one that the file does not
// justify.
// '#' starts a comment; blank lines are skipped; a blank may stand between a colon and its value. Throws
// DataError.
Dataset parse_libsvm(std::string_view text, const std::string& file, std::size_t dim = 0);
// The same of a file that is not kept in memory, or of some of its rows.
Dataset parse_libsvm(ByteStream& text, const std::string& file, std::size_t dim, const KeepRow& keep);

}  // namespace gradwire
