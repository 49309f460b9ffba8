// The folder that says who a client, or a relay, is: its key, its name, and which server it belongs to.
#pragma once

#include <filesystem>
#include <string>

#include "proto/security/login.h"

namespace gradwire {

// token: as in Invitation, or @FILE whose first word it is; may be empty.
// Reads FOLDER/client.key (Ed25519, mode 0600) and FOLDER/client (name and realm). With a token they are made
// where they are missing, and the folder too; where they are there, the token must be for the same name and
// server. Throws std::invalid_argument (the arguments or the folder must be mended) or std::runtime_error,
// one line.
Credentials open_identity(const std::filesystem::path& folder, const std::string& token);

// Writes FOLDER/client of a name and realm whose key lies there. Throws std::runtime_error.
void write_identity(const std::filesystem::path& folder, const std::string& name, const std::string& realm);

}  // namespace gradwire
