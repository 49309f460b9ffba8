// The command gradwire-server relay.
#pragma once

namespace gradwire {

// Returns true for `gradwire-server relay ...`, and for its old form `gradwire-server --upstream ...`.
bool is_relay_command(int argc, const char* const* argv);
// Runs the relay and returns the exit code. Warns about the old form.
int relay_command(int argc, char** argv);

}  // namespace gradwire
