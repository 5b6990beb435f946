// SPDX-License-Identifier: Apache-2.0
#include "search/script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rehearse::search {

std::string batch_script(Scheduler scheduler, const BatchJob& job) {
    const auto minutes = std::max<std::int64_t>(1, std::llround(std::ceil(job.limit.value / 60)));
    const std::string limit = fmt::format("{:02}:{:02}", minutes / 60, minutes % 60);
    if (scheduler == Scheduler::lsf) {
        return fmt::format(
            "#!/bin/bash\n"
            "#BSUB -J {}\n"
            "#BSUB -nnodes {}\n"
            "#BSUB -W {}\n"
            "##BSUB -P YOUR_PROJECT\n"
            "jsrun --nrs {} --tasks_per_rs 1 --gpu_per_rs {} --rs_per_host {} --launch_distribution packed \\\n"
            "    {}\n",
            job.name, job.nodes, limit, job.ranks, job.gpus ? 1 : 0, job.ranks_per_node, job.command);
    }
    return fmt::format(
        "#!/bin/bash\n"
        "#SBATCH --job-name={}\n"
        "#SBATCH --nodes={}\n"
        "#SBATCH --ntasks={}\n"
        "#SBATCH --ntasks-per-node={}\n"
        "{}"
        "#SBATCH --time={}:00\n"
        "##SBATCH --account=YOUR_ACCOUNT\n"
        "srun --distribution=block \\\n"
        "    {}\n",
        job.name, job.nodes, job.ranks, job.ranks_per_node,
        job.gpus ? fmt::format("#SBATCH --gpus-per-node={}\n", job.ranks_per_node) : "", limit, job.command);
}

}  // namespace rehearse::search
