// gradwire-server init, enroll, revoke, renew and clients: who the server is, and who its clients are.
#pragma once

#include <string_view>

namespace gradwire {

bool is_identity_command(std::string_view word);
// Runs the command in argv[1]; returns the exit code.
int identity_command(int argc, char** argv);

}  // namespace gradwire
