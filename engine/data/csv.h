// Comma-separated numbers: one sample per line, the features first, the label last; one header line is
// allowed.
#pragma once

#include <string>
#include <string_view>

#include "engine/data/bytes.h"
#include "engine/dataset.h"

namespace gradwire {

// `file` is for the errors' text. The first line is a header when none of its fields is a number. All lines
// have the same number of fields, at least two; blank lines are skipped; zeros are not stored. Throws
// DataError.
Dataset parse_csv(std::string_view text, const std::string& file);
// The same of a file that is not kept in memory, or of some of its rows.
Dataset parse_csv(ByteStream& text, const std::string& file, const KeepRow& keep);

}  // namespace gradwire
