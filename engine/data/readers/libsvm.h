// The LIBSVM text format: one sample per line, "LABEL INDEX:VALUE INDEX:VALUE ...". Indices ascend from 1.
// Values that are not given are zero.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/data/dataset.h"
#include "engine/data/readers/bytes.h"

namespace gradwire {

// Limits of the number of columns, because a model needs memory for every column. Up to kUnquestionedColumns
// are always accepted. Above that, a largest index of more than kColumnsPerValue times the number of values
// in the file is an error unless `dim` allows it.
inline constexpr std::uint64_t kUnquestionedColumns = 1u << 20, kColumnsPerValue = 64;

// Parses a LIBSVM text. `file` is for errors. Index 1 is column 0. If `dim` > 0, it sets the number of
// columns; otherwise the largest index does. An index above dim or above 2^32-2 is an error, and so is one
// above the limit of kColumnsPerValue. '#' starts a comment. Blank lines are skipped, and so is a pair
// qid:NUMBER after the label; a warning says so. A blank may stand between a colon and its value. Throws
// DataError.
Dataset parse_libsvm(std::string_view text, const std::string& file, std::size_t dim = 0);
// Parses a stream without keeping its text in memory. `keep` says which rows to keep.
Dataset parse_libsvm(ByteStream& text, const std::string& file, std::size_t dim, const KeepRow& keep);
// Does the same for all rows, in two passes: the first one measures the text, so that the dataset gets the
// memory that it needs at once.
Dataset parse_libsvm(const std::function<std::unique_ptr<ByteStream>()>& open, const std::string& file,
                     std::size_t dim);

// Returns true if the first sample of a text is LABEL INDEX:VALUE ..., or a label alone.
bool looks_like_libsvm(std::string_view text);

}  // namespace gradwire
