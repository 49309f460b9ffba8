// Common parts of `gradwire` and `gradwire-bench`: ranks, and the programs in their folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "mpi/launch.h"
#include "mpi/ranks.h"

namespace gradwire {

// Returns the ranks of this job, or null if there is only one process. Throws UsageError if this program was
// built without MPI, or with another MPI than the launcher's: each copy would then do all of the work.
std::shared_ptr<Ranks> join_job(const Launch& launch);

// Returns the path of program `name` in the folder of this one. Throws std::runtime_error if it is missing:
// "`what_for` needs the program ...".
std::filesystem::path installed_program(const std::string& name, const std::string& what_for);

}  // namespace gradwire
