// Whether something like mpirun or srun has started several copies of this program.
#pragma once

#include <functional>
#include <string>

namespace gradwire {

// One line on why such a start is refused, empty where there is one process. `variable`: returns the value of
// an environment variable, or null. This build has no MPI, so each copy would make the whole run, into the
// same folder. A batch script of several tasks that calls the program once is one process.
std::string trouble_of_ranks(const std::function<const char*(const char*)>& variable);

}  // namespace gradwire
