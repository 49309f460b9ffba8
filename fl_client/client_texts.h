// Texts for a client's log and its errors.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/data/table.h"

namespace gradwire {

// Lists the columns for an operator who compares the tables of two clients. The server is not told names.
std::string columns_text(const TableEncoding& table);
// Adds where the keys that an error names are, as a client has no experiment file.
std::string with_place_of_keys(const std::string& error);

// Returns the error of a connection that ended.
Error connection_lost(const std::string& why);
// The end of an error of the handshake of TLS.
inline constexpr const char* kBeforeTls =
    " before TLS began: the server does not use TLS, or refuses connections from here now";

}  // namespace gradwire
