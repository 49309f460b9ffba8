// Ranks over MPI, if the program was built with it.
#pragma once

#include <memory>

#include "mpi/ranks.h"

namespace gradwire {

// Returns whether this program was built with MPI.
bool has_mpi();

// Begins MPI. Call it once, from the thread that will communicate. REQUIRES: has_mpi(). Throws
// std::runtime_error on failure. The destructor of the object ends MPI; all ranks must reach it, or one must
// call end_job().
std::shared_ptr<Ranks> begin_mpi();

// Ends all ranks of the job at once, with this exit code.
[[noreturn]] void end_job(int exit_code);

}  // namespace gradwire
