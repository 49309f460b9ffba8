#include "experiments/cli/support/program.h"

#include <stdexcept>
#include <system_error>
#include <unistd.h>

#include "mpi/mpi_ranks.h"
#include "report/results_dir.h"

namespace gradwire {
namespace fs = std::filesystem;

std::shared_ptr<Ranks> join_job(const Launch& launch) {
  if (launch.processes <= 1) return nullptr;
  if (!has_mpi()) throw UsageError(trouble_of(launch));
  std::shared_ptr<Ranks> ranks = begin_mpi();
  // The launcher of another MPI starts copies that cannot communicate.
  if (ranks->count() != launch.processes)
    throw UsageError(launch.variable + " says that this is one of " + std::to_string(launch.processes) +
                     " processes, but the MPI that gradwire was built with says one of " +
                     std::to_string(ranks->count()) +
                     "; start it with the mpirun of that MPI, or by srun with the --mpi= for it");
  return ranks;
}

fs::path installed_program(const std::string& name, const std::string& what_for) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path program = self.parent_path() / name;
  if (error || access(program.c_str(), X_OK) != 0)
    throw std::runtime_error(
        what_for + " needs the program " + program.string() +
        ", which does not exist; build all programs (tools/build) or install all of gradwire");
  return program;
}

}  // namespace gradwire
