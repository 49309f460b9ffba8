// Comma-separated values: one sample per line. The label is in the last column, or in the one that a header
// names.
#pragma once

#include <string>
#include <string_view>

#include "engine/data/dataset.h"
#include "engine/data/readers/bytes.h"

namespace gradwire {

// Parses CSV text. Error messages name `file`. The first line is a header if it has column names. Numbers
// among them must be ascending whole numbers, like the default column names of pandas. The label column is
// the one named label, class, target or y, in any case. The dataset gets a warning if a header has no such
// column, or if the label is not last. All lines must have the same number of fields, at least two. Fields
// may be in double quotes. Blank lines are skipped. Zeros are not stored. Throws DataError.
Dataset parse_csv(std::string_view text, const std::string& file);
// Parses a stream without keeping its text in memory. `keep` says which rows to keep.
Dataset parse_csv(ByteStream& text, const std::string& file, const KeepRow& keep);

}  // namespace gradwire
