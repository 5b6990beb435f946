// SPDX-License-Identifier: Apache-2.0
// The state of a training between two steps, of the whole network and of no plan: what one plan has saved, another may
// go on from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/program.hpp"

namespace rehearse::run {

/// Numbers of one layer of the whole network, as the optimizer has them. Of tied layers, the owner's.
struct LayerState {
    std::vector<float> weights, momentum, second_moment;  // moments empty where the optimizer keeps none
    std::vector<float> statistics;                        // BatchNorm: running mean and variance
    std::vector<float> lagged;                            // summed gradients that wait for their update, with lag=1
    std::vector<float> gradients;                         // of the last step, where asked for; in no checkpoint
};

struct Checkpoint {
    std::string network, optimizer;
    std::int64_t steps = 0;         // that have been done
    std::int64_t samples = 0;       // that these were made of
    std::int64_t global_batch = 0;  // of the last of them
    std::uint64_t seed = 0;
    ProgramState program{};
    std::vector<LayerState> layers{};  // of the network's layers
    std::vector<std::string> names{};  // theirs
};

/// The state of a training whose ranks have states of their own (models of their own and averages, servers, what few
/// bits left out): the numbers of each rank of the job, in an order of its own. Only the same plan may go on from it.
struct RankStates {
    std::string network, optimizer, plan;
    std::string hyperparameters{};  // as options say them; empty in files of before they were written
    std::int64_t steps = 0, global_batch = 0;
    std::uint64_t seed = 0;
    std::vector<std::vector<float>> ranks{};
};

/// Whether a state has the last step's gradients, too.
enum class With { state, gradients };
/// All sizes as the network says, all numbers 0.
Checkpoint empty_checkpoint(const Schedule& schedule, With with = With::state);

/// Collective: by the axis of a bucket, the ranks that share it with this one, whichever buckets each of them has.
std::map<int, kernels::Communicator> groups_of_buckets(const kernels::Communicator& world, const Schedule& schedule);
/// Collective: where each rank of the group has its piece, all get the whole.
void join_pieces(kernels::Communicator& group, kernels::View pieces);

/// Collective. On rank 0 the state of all ranks, elsewhere nothing of use. Running statistics, which no training step
/// reads, are those of the first copy of the network along the data axis. `scale`: what the loss was multiplied by that
/// the last step's gradients are of.
Checkpoint gather(const kernels::Communicator& world, const Schedule& schedule, Program& program,
                  With with = With::state, float scale = 1);

/// A rank takes its part of the whole network's state.
void take(const Schedule& schedule, RankIndex rank, const Checkpoint& checkpoint, Program& program);
/// Collective. All ranks have what rank 0 has, and each takes its part of it.
void scatter(const kernels::Communicator& world, const Schedule& schedule, Checkpoint& checkpoint, Program& program);

/// "this build has no HDF5 ...", or nothing.
std::optional<std::string> why_no_checkpoints();

/// A file that is either whole or not there: written under another name, to the disk, then renamed. BackendError when
/// that fails. The newest two of a folder are kept.
void save(const std::filesystem::path& folder, const Checkpoint& checkpoint);
void save(const std::filesystem::path& folder, const RankStates& states);

/// The group of a layer in a file: its name, '/' as '.', as HDF5 has it for groups in groups.
std::string group_name(const std::string& layer);

/// One group a layer that has weights, in it one data set a tensor (weights, bias, gamma, ...), with its shape: of the
/// weights and running statistics, or of the gradients. BackendError when it cannot be written.
void save_weights(const std::filesystem::path& file, const Network& network, const Checkpoint& checkpoint);
void save_gradients(const std::filesystem::path& file, const Network& network, const Checkpoint& checkpoint);

/// The newest of a folder; nothing where there is none.
std::optional<std::filesystem::path> newest(const std::filesystem::path& folder);

/// InputError where the file is none of ours, or of another network or optimizer.
Checkpoint load(const std::filesystem::path& file, const Schedule& schedule);
/// InputError, too, where it is of another plan or number of ranks than `like`.
RankStates load(const std::filesystem::path& file, const RankStates& like);

}  // namespace rehearse::run
