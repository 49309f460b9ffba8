// Checks of the files of certificates. Only for .cpp files of this folder.
#pragma once

#include <filesystem>
#include <string>

namespace gradwire {

// Throws std::invalid_argument.
[[noreturn]] void refuse_files(const std::string& what);
// Refuses pipes, because opening one waits for its writer. Throws std::invalid_argument.
void refuse_pipe(const std::filesystem::path& file);
// Refuses a key that others may read, and a certificate that is a pipe. Throws std::invalid_argument.
void check_pair(const std::filesystem::path& certificate, const std::filesystem::path& key);

}  // namespace gradwire
