// Comma-separated numbers: one sample per line, the label in the last column or in the one that a header
// names.
#pragma once

#include <string>
#include <string_view>

#include "engine/data/dataset.h"
#include "engine/data/readers/bytes.h"

namespace gradwire {

// `file` is for the errors' text. The first line is a header when it has names and no number, or numbers that
// count columns, as pandas writes them. A header names the column of the label: label, class, target or y, in
// any case. The dataset has a warning when a header has no such name, or the label is not last. All lines
// have the same number of fields, at least two; fields may stand in double quotes; blank lines are skipped;
// zeros are not stored. Throws DataError.
Dataset parse_csv(std::string_view text, const std::string& file);
// The same of a file that is not kept in memory, or of some of its rows.
Dataset parse_csv(ByteStream& text, const std::string& file, const KeepRow& keep);

}  // namespace gradwire
