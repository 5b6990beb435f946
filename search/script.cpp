// SPDX-License-Identifier: Apache-2.0
#include "search/script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/error.hpp"

namespace rehearse::search {

namespace {

bool is_plain(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.'; }

std::string name_of(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return !is_plain(c); }, '_');
    return text.empty() || text[0] == '-' ? "job" + text : text;
}

/// A value of a directive, the user's or the site's. Directives are comments, which no shell looks into, but a
/// scheduler splits them at blanks.
std::string value_of(std::string_view option, const std::string& given, std::string_view usual) {
    constexpr std::string_view also = "&|,:*@/()[]=+";  // constraints are expressions: gpu&hbm80g
    const auto fits = [&](char c) { return is_plain(c) || also.find(c) != std::string_view::npos; };
    if (!std::ranges::all_of(given, fits)) {
        throw InputError(
            fmt::format("{} '{}': a batch system takes letters, digits and {}_-. here", option, given, also));
    }
    return given.empty() ? std::string{usual} : given;
}

struct Values {
    std::string account, constraint, queue, limit;  // limit: hours:minutes
};

/// "#SBATCH --account=x", or the same as a comment to fill in.
std::string directive(std::string_view word, std::string_view option, const std::string& value,
                      std::string_view blank) {
    if (!value.empty()) return fmt::format("#{} {}{}\n", word, option, value);
    return blank.empty() ? "" : fmt::format("##{} {}{}\n", word, option, blank);
}

/// What each rank runs: the launcher's names for its numbers become those of PyTorch's launchers.
std::string on_each_rank(const BatchJob& job, std::string_view rank, std::string_view local, bool own_gpu) {
    const std::string gpu = own_gpu && job.gpus ? fmt::format(" CUDA_VISIBLE_DEVICES=${}", local) : "";
    return "bash -c " + shell_word(fmt::format("export RANK=${} LOCAL_RANK=${} WORLD_SIZE={}{}; {}", rank, local,
                                               job.ranks, gpu, job.command));
}

std::string rendezvous(std::string_view first_host) {
    return fmt::format("export MASTER_ADDR={} MASTER_PORT=29500\n", first_host);
}

std::string slurm(const Site& site, const BatchJob& job, const Values& values) {
    std::string text = fmt::format(
        "#!/bin/bash\n"
        "#SBATCH --job-name={}\n"
        "#SBATCH --nodes={}\n"
        "#SBATCH --ntasks={}\n"
        "#SBATCH --ntasks-per-node={}\n"
        "#SBATCH --time={}:00\n",
        name_of(job.name), job.nodes, job.ranks, job.ranks_per_node, values.limit);
    const std::string cores = site.cores_per_rank > 0 ? fmt::format("{}", site.cores_per_rank) : "";
    text += directive("SBATCH", "--cpus-per-task=", cores, "");
    if (job.gpus) {
        const std::string_view between = site.gpu_option.starts_with("--gres") ? ":" : "=";
        text += fmt::format("#SBATCH {}{}{}\n#SBATCH --gpu-bind=none\n", site.gpu_option, between, job.ranks_per_node);
    }
    text += directive("SBATCH", "--constraint=", values.constraint, "");
    text += directive("SBATCH", fmt::format("{}=", site.queue_option), values.queue, "");
    text += directive("SBATCH", "--account=", values.account, "YOUR_ACCOUNT");
    if (!cores.empty()) text += "export SLURM_CPU_BIND=cores SRUN_CPUS_PER_TASK=" + cores + "\n";
    return text + rendezvous("$(hostname)") + "srun --distribution=block,Pack \\\n    " +
           on_each_rank(job, "SLURM_PROCID", "SLURM_LOCALID", false) + "\n";
}

std::string lsf(const Site& site, const BatchJob& job, const Values& values) {
    std::string text = fmt::format(
        "#!/bin/bash\n"
        "#BSUB -J {}\n"
        "#BSUB -nnodes {}\n"
        "#BSUB -W {}\n",
        name_of(job.name), job.nodes, values.limit);
    text += directive("BSUB", "-R ", values.constraint, "");
    text += directive("BSUB", "-q ", values.queue, "");
    text += directive("BSUB", "-P ", values.account, "YOUR_PROJECT");
    text += rendezvous("$(grep -v -e batch -e login -e launch \"$LSB_DJOB_HOSTFILE\" | head -n 1)");
    const std::string cores = site.cores_per_rank > 0 ? fmt::format(" --cpu_per_rs {} --bind packed:{}",
                                                                    site.cores_per_rank, site.cores_per_rank)
                                                      : "";
    return text + fmt::format(
                      "jsrun --nrs {} --tasks_per_rs 1{} --gpu_per_rs {} --rs_per_host {} --launch_distribution "
                      "packed \\\n    {}\n",
                      job.ranks, cores, job.gpus ? 1 : 0, std::min(job.ranks, job.ranks_per_node),
                      on_each_rank(job, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", false));
}

// With PALS's mpiexec, as on the machines of ALCF (https://docs.alcf.anl.gov/polaris/running-jobs/), where a rank takes
// its GPU by its number on the node.
std::string pbs(const Site& site, const BatchJob& job, const Values& values) {
    const std::int64_t cores = std::max<std::int64_t>(1, site.cores_per_rank);
    std::string text = fmt::format(
        "#!/bin/bash\n"
        "#PBS -N {}\n"
        "#PBS -l select={}:mpiprocs={}{}{}\n"
        "#PBS -l place=scatter\n"
        "#PBS -l walltime={}:00\n",
        name_of(job.name), job.nodes, job.ranks_per_node, job.gpus ? fmt::format(":ngpus={}", job.ranks_per_node) : "",
        values.constraint.empty() ? "" : ":" + values.constraint, values.limit);
    text += directive("PBS", "-q ", values.queue, "");
    text += directive("PBS", "-A ", values.account, "YOUR_PROJECT");
    text += "cd \"$PBS_O_WORKDIR\"\n" + rendezvous("$(head -n 1 \"$PBS_NODEFILE\")");
    return text + fmt::format("mpiexec -n {} --ppn {} --depth={} --cpu-bind depth \\\n    {}\n", job.ranks,
                              job.ranks_per_node, cores, on_each_rank(job, "PMI_RANK", "PMI_LOCAL_RANK", true));
}

}  // namespace

std::string shell_word(std::string_view text) {
    constexpr std::string_view also = "/:=,+@%";
    const auto plain = [&](char c) { return is_plain(c) || also.find(c) != std::string_view::npos; };
    if (!text.empty() && std::ranges::all_of(text, plain)) return std::string{text};
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string{c};
    return quoted + "'";
}

std::string batch_script(Scheduler scheduler, const Site& site, const BatchJob& job) {
    if (job.command.find('\n') != std::string::npos) {
        throw InputError("--command: one line; a script of your own may have more");
    }
    const auto minutes = std::max<std::int64_t>(1, std::llround(std::ceil(job.limit.value / 60)));
    const Values values{
        value_of("--account", job.account, ""), value_of("--constraint", job.constraint, site.constraint),
        value_of("--queue", job.queue, site.queue), fmt::format("{:02}:{:02}", minutes / 60, minutes % 60)};
    std::string text = scheduler == Scheduler::lsf   ? lsf(site, job, values)
                       : scheduler == Scheduler::pbs ? pbs(site, job, values)
                                                     : slurm(site, job, values);
    if (job.jobs > 1) {
        text.insert(text.find('\n') + 1,
                    fmt::format("# One of {} jobs: submit it again when it has ended, and it goes on.\n", job.jobs));
    }
    return text;
}

}  // namespace rehearse::search
