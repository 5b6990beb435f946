// SPDX-License-Identifier: Apache-2.0
// What batch scripts of some computing centres look like, from the examples in their own documentation.
#include <algorithm>
#include <array>

#include "search/script.hpp"

namespace rehearse::search {

namespace {

constexpr std::array sites{
    // 4 GPUs and 64 cores of two threads a node: 32 a rank; all GPUs of a node are visible to each of its ranks.
    Site{.machine = "perlmutter",
         .constraint = "gpu",
         .queue = "regular",
         .queue_option = "--qos",
         .cores_per_rank = 32,
         .source = "https://docs.nersc.gov/systems/perlmutter/running-jobs/"},
    // 48 cores a node.
    Site{.machine = "juwels-booster",
         .queue = "booster",
         .gpu_option = "--gres=gpu",
         .cores_per_rank = 12,
         .source = "https://apps.fz-juelich.de/jsc/hps/juwels/batchsystem.html"},
    Site{.machine = "piz-daint", .constraint = "gpu", .source = "https://user.cscs.ch/access/running/piz_daint/"},
    // 42 cores of a node are the user's, 7 a GPU.
    Site{.machine = "summit",
         .scheduler = Scheduler::lsf,
         .cores_per_rank = 7,
         .source = "https://docs.olcf.ornl.gov/systems/summit_user_guide.html#running-jobs"},
    // 40 cores of a node are the user's.
    Site{.machine = "lassen",
         .scheduler = Scheduler::lsf,
         .queue = "pbatch",
         .cores_per_rank = 10,
         .source = "https://hpc.llnl.gov/banks-jobs/running-jobs/slurm-srun-versus-ibm-csm-jsrun"},
    // 32 cores and 4 GPUs a node.
    Site{.machine = "polaris",
         .scheduler = Scheduler::pbs,
         .cores_per_rank = 8,
         .source = "https://docs.alcf.anl.gov/polaris/running-jobs/"},
    Site{.machine = "aurora",
         .scheduler = Scheduler::pbs,
         .source = "https://docs.alcf.anl.gov/aurora/running-jobs-aurora/"},
};
constexpr Site anywhere{};

}  // namespace

const Site& site_of(std::string_view machine) {
    const auto* const found = std::ranges::find(sites, machine, &Site::machine);
    return found == sites.end() ? anywhere : *found;
}

}  // namespace rehearse::search
