// The commands of gradwire-server for identities: init, enroll, revoke, role, renew, certify and clients.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

std::vector<std::string> identity_command_names();
bool is_identity_command(std::string_view word);
// Runs the command in argv[1] and returns the exit code.
int identity_command(int argc, char** argv);

}  // namespace gradwire
