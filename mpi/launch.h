// Detects whether a launcher like mpirun or srun has started several copies of this program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gradwire {

struct Launch {
  std::uint32_t processes = 1;
  std::string variable;  // the environment variable that says so; empty for one process
};
// Detects the launch. `variable` returns the value of an environment variable, or null. A batch script with
// several tasks that calls the program once counts as one process.
Launch launch_of(const std::function<const char*(const char*)>& variable);

// Returns one line that explains why a program without MPI refuses to start as one of several copies: each
// copy would make the whole run, in the same folder. Empty if there is one process.
std::string trouble_of(const Launch& launch);

}  // namespace gradwire
