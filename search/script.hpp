// SPDX-License-Identifier: Apache-2.0
// The batch script that would run a plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace rehearse::search {

enum class Scheduler { slurm, lsf, pbs };

/// What a computing centre's own examples of batch scripts have beside nodes, ranks and time.
struct Site {
    std::string_view machine;  // by its name here
    Scheduler scheduler = Scheduler::slurm;
    std::string_view constraint{};  // the kind of node; empty: none is asked for
    std::string_view queue{};       // queue, partition or quality of service, as `queue_option` says
    std::string_view queue_option = "--partition";
    std::string_view gpu_option = "--gpus-per-node";  // of Slurm; followed by = and the number
    std::int64_t cores_per_rank = 0;                  // that a rank is bound to; 0: the scheduler's default
    std::string_view source{};                        // the page of its examples
};
/// That of a machine by name, or one without particulars, for Slurm.
const Site& site_of(std::string_view machine);

struct BatchJob {
    std::string name;     // of the job; what a directive cannot hold becomes _
    std::string command;  // a shell's command line, which each rank runs
    std::int64_t ranks = 1, nodes = 1, ranks_per_node = 1;
    bool gpus = false;                             // one for each rank
    Seconds limit;                                 // wall time asked for, rounded up to minutes
    std::int64_t jobs = 1;                         // as this one, each after the one before, until all is done
    std::string account{}, constraint{}, queue{};  // empty: the site's; without one a comment to fill in
};

/// Slurm: srun, one task a rank, consecutive ranks on a node, which is filled before the next one as predicted
/// (--distribution=block,Pack: without Pack, six tasks of four a node would be three on each). LSF: jsrun, one
/// resource set a rank. PBS: mpiexec with as many ranks on each node. Each rank finds RANK, LOCAL_RANK, WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT in its environment, as PyTorch's launchers leave them. InputError: an account,
/// constraint or queue that a directive cannot hold, or a command of several lines.
std::string batch_script(Scheduler scheduler, const Site& site, const BatchJob& job);

/// As one word of a POSIX shell, whatever it contains.
std::string shell_word(std::string_view text);

}  // namespace rehearse::search
