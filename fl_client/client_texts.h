// Texts for a client's log and its errors.
#pragma once

#include <string>

#include "engine/data/table.h"

namespace gradwire {

// Lists the columns for an operator who compares the tables of two clients. The server is not told names.
std::string columns_text(const TableEncoding& table);
// Adds where the keys that an error names are, as a client has no experiment file.
std::string with_place_of_keys(const std::string& error);

}  // namespace gradwire
