// The commands of gradwire-server for identities: init, enroll, revoke, role, renew, certify and clients.
#pragma once

#include <string_view>

namespace gradwire {

bool is_identity_command(std::string_view word);
// Runs the command in argv[1] and returns the exit code.
int identity_command(int argc, char** argv);

}  // namespace gradwire
