// Comma-separated values: one sample per line. The label is in the last column, or in the one that a header
// names.
#pragma once

#include <string>
#include <string_view>

#include "engine/data/dataset.h"
#include "engine/data/readers/bytes.h"

namespace gradwire {

// Parses a CSV text. `file` is for errors. The first line is a header if it has names and no number, or
// numbers that count columns, as pandas writes them. A header names the column of the label: label, class,
// target or y, in any case. The dataset has a warning if a header has no such name, or if the label is not
// last. All lines have the same number of fields, at least two. Fields may be in double quotes. Blank lines
// are skipped. Zeros are not stored. Throws DataError.
Dataset parse_csv(std::string_view text, const std::string& file);
// Parses a file without keeping it in memory, or some of its rows.
Dataset parse_csv(ByteStream& text, const std::string& file, const KeepRow& keep);

}  // namespace gradwire
