#include "mpi/launch.h"

#include <gtest/gtest.h>
#include <map>

namespace gradwire {
namespace {

using Variables = std::map<std::string, std::string>;

std::string trouble(const Variables& variables) {
  return trouble_of(launch_of([&](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  }));
}

TEST(Launch, RefusesCopiesThatALauncherHasStarted) {
  const Variables open_mpi = {{"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_RANK", "1"}},
                  mpich = {{"PMI_SIZE", "3"}, {"PMI_RANK", "0"}}, mvapich = {{"MV2_COMM_WORLD_SIZE", "3"}},
                  srun = {{"SLURM_NTASKS", "3"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "3"}},
                  old_srun = {{"SLURM_NTASKS", "3"}, {"SLURM_STEP_ID", "0"}};
  for (const Variables& variables : {open_mpi, mpich, mvapich, srun, old_srun})
    EXPECT_EQ(trouble(variables).substr(0, 29), "started as one of 3 processes") << variables.begin()->first;
}

TEST(Launch, AcceptsASingleProcessFromAnyLauncher) {
  const Variables by_hand,
      one_of_mpirun = {{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMI_SIZE", "1"}},
      batch_script = {{"SLURM_NTASKS", "3"}, {"SLURM_PROCID", "0"}},
      one_task_of_a_job = {{"SLURM_NTASKS", "3"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}},
      nonsense = {{"PMI_SIZE", "many"}};
  for (const Variables& variables : {by_hand, one_of_mpirun, batch_script, one_task_of_a_job, nonsense})
    EXPECT_EQ(trouble(variables), "");
}

}  // namespace
}  // namespace gradwire
