/* Rank and job, where the variables of a launcher tell them. */
#include "meter/meter.h"

#include <stdlib.h>

/* The first launcher whose rank (or job) is set is the one; Slurm also starts MPI, which knows the
 * rank as well, so MPI comes first. */
static const struct {
    const char *name, *rank, *size, *local, *job;
} launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "PMIX_NAMESPACE"},
    {"mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", NULL},
    {"mpi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "PMI_JOBID"},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID"},
    {"dask", "DASK_WORKER_NAME", NULL, NULL, "DASK_SCHEDULER_ADDRESS"},
};

static void tell_variable(meter_fact_fn tell, void *ctx, const char *key, const char *variable)
{
    const char *value = variable ? getenv(variable) : NULL;
    if (value && *value)
        tell(ctx, key, value);
}

void meter_launch_facts(meter_fact_fn tell, void *ctx)
{
    for (size_t i = 0; i < ARRAY_LEN(launchers); i++) {
        /* RANK alone may be anybody's: torchrun sets its id as well */
        bool is_torch = i == 0;
        const char *rank = getenv(launchers[i].rank);
        const char *job = launchers[i].job ? getenv(launchers[i].job) : NULL;
        if (is_torch ? !rank || !job : !rank && !job)
            continue;
        tell(ctx, "launcher", launchers[i].name);
        tell_variable(tell, ctx, "rank", launchers[i].rank);
        tell_variable(tell, ctx, "world_size", launchers[i].size);
        tell_variable(tell, ctx, "local_rank", launchers[i].local);
        tell_variable(tell, ctx, "job", launchers[i].job);
        break;
    }
    const char *slurm = getenv("SLURM_JOB_ID");
    if (slurm && *slurm)
        tell(ctx, "slurm_job", slurm);
}
