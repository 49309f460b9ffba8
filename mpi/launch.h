// Whether something like mpirun or srun has started several copies of this program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gradwire {

struct Launch {
  std::uint32_t processes = 1;
  std::string variable;  // that says so; empty: none does
};
// `variable`: returns the value of an environment variable, or null. A batch script of several tasks that
// calls the program once is one process.
Launch launch_of(const std::function<const char*(const char*)>& variable);

// One line on why a start that is one of several is refused by a program that has no MPI: each copy would
// make the whole run, into the same folder. Empty where there is one process.
std::string trouble_of(const Launch& launch);

}  // namespace gradwire
