// The identity folder of a client or relay: its key, its name, and the server that it belongs to.
#pragma once

#include <filesystem>
#include <string>

#include "proto/security/login.h"

namespace gradwire {

// Reads FOLDER/client.key (Ed25519, mode 0600) and FOLDER/client (name and realm). `token` is the text of an
// Invitation, or @FILE if that text is the first word of FILE, or empty. With a token, a missing folder and
// key are created, and the credentials are new until write_identity(): a token that the server refuses leaves
// a folder that another one can use. An existing file must have the same name and server as the token. Throws
// std::invalid_argument (the user must fix the arguments or the folder) or std::runtime_error, one line.
Credentials open_identity(const std::filesystem::path& folder, const std::string& token);

// Writes FOLDER/client for a name and realm; the key is already in the folder. Throws std::runtime_error.
void write_identity(const std::filesystem::path& folder, const std::string& name, const std::string& realm);

}  // namespace gradwire
