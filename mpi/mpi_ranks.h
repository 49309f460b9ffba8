// Ranks over MPI, where the program was built with it.
#pragma once

#include <memory>

#include "mpi/ranks.h"

namespace gradwire {

// Whether this program was built with MPI.
bool has_mpi();

// Begins MPI; to be called once, by the thread that will talk. REQUIRES: has_mpi(). Throws std::runtime_error
// when it cannot. The object ends MPI when it is destroyed: all ranks come to that point, or one calls
// end_job().
std::shared_ptr<Ranks> begin_mpi();

// Ends all ranks of the job at once, with this exit code.
[[noreturn]] void end_job(int exit_code);

}  // namespace gradwire
