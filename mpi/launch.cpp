#include "mpi/launch.h"

#include <charconv>
#include <cstdint>
#include <cstring>

namespace gradwire {
namespace {

struct Launcher {
  const char* size;     // the number of copies started
  const char* only_if;  // a variable that only the copies have; null if only they have `size`
};

constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_SIZE", nullptr},  // mpirun of Open MPI
    {"PMI_SIZE", nullptr},              // mpiexec of MPICH, Intel MPI
    {"MV2_COMM_WORLD_SIZE", nullptr},   // MVAPICH2
    {"SLURM_STEP_NUM_TASKS", nullptr},  // srun; sbatch does not set it
    {"SLURM_NTASKS", "SLURM_STEP_ID"},  // srun of old releases; sbatch sets the first alone
};

std::uint32_t number(const char* text) {
  std::uint32_t value = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), value);
  return value;
}

}  // namespace

Launch launch_of(const std::function<const char*(const char*)>& variable) {
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.only_if != nullptr && variable(launcher.only_if) == nullptr) continue;
    const std::uint32_t size = number(variable(launcher.size));
    if (size > 1) return {size, launcher.size};
    // For srun of one task inside a job of several, ignore the variable of the job.
    if (size == 1 && std::strcmp(launcher.size, "SLURM_STEP_NUM_TASKS") == 0) break;
  }
  return {};
}

std::string trouble_of(const Launch& launch) {
  if (launch.processes == 1) return "";
  return "started as one of " + std::to_string(launch.processes) + " processes (" + launch.variable +
         " is set, as by mpirun or srun), and each would make the whole run in the same folder: this "
         "gradwire was built without MPI; build it with -DGRADWIRE_MPI=ON, or start it once, with --threads "
         "N";
}

}  // namespace gradwire
