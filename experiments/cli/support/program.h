// What `gradwire` and `gradwire-bench` have in common: exit codes of failures, ranks, the programs beside
// them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "mpi/launch.h"
#include "mpi/ranks.h"
#include "report/logger.h"

namespace gradwire {

// What `work` returns; when it throws, its error is one line of the log, and the result kBadUsage
// (experiment, data, usage) or kFailed.
int exit_code_of(Logger& logger, const std::function<int()>& work);

// Null where this process is alone. Throws UsageError when this program was built without MPI, or with
// another MPI than the launcher's: copies that do not know of each other would each do the whole.
std::shared_ptr<Ranks> join_job(const Launch& launch);

// The program `name` in the folder of this one. Throws std::runtime_error when it is not there: "`what_for`
// needs the program ...".
std::filesystem::path installed_program(const std::string& name, const std::string& what_for);

}  // namespace gradwire
