// The LIBSVM text format: one sample per line, "LABEL INDEX:VALUE INDEX:VALUE ...", indices ascending from 1,
// values that are not named are zero.
#pragma once

#include <string>
#include <string_view>

#include "engine/data/bytes.h"
#include "engine/dataset.h"

namespace gradwire {

// `file` is for the errors' text. Index 1 is column 0. `dim` > 0 sets the number of columns, else it is the
// largest index; an index above dim or above 2^32-2 is an error. '#' starts a comment; blank lines are
// skipped. Throws DataError.
Dataset parse_libsvm(std::string_view text, const std::string& file, std::size_t dim = 0);
// The same of a file that is not kept in memory, or of some of its rows.
Dataset parse_libsvm(ByteStream& text, const std::string& file, std::size_t dim, const KeepRow& keep);

}  // namespace gradwire
