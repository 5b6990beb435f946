// SPDX-License-Identifier: Apache-2.0
// What a schedule means, written out for one rank: the reference that a training over many ranks is held to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/schedule.hpp"
#include "run/program.hpp"
#include "run/reference/part_check.hpp"

namespace rehearse::run {

/// Gradients of the last step and weights after it, layer by layer of the whole network.
struct Trained {
    std::vector<std::vector<float>> gradients, weights;
};

/// By part of the batch (SingleRank::parts); `changed` by perturbation and part.
struct BatchGradients {
    std::vector<std::vector<float>> by_part;
    std::vector<std::vector<std::vector<float>>> changed{};
};

class SingleRank {
public:
    /// `single` is a schedule of one rank with one micro-batch's samples (of any of them, where shares are uneven).
    SingleRank(const Schedule& schedule, const Schedule& single, const ReferenceOptions& options)
        : schedule_(schedule), single_(single), options_(options) {}

    /// What `rank` ends with; of a training from changed weights (check_part) where `perturbation` is not 0.
    Trained train(RankIndex rank, int perturbation) const;

    // What the methods' references (below) are written with:
    const Schedule& schedule() const { return schedule_; }
    const ReferenceOptions& options() const { return options_; }
    const std::vector<Layer>& layers() const { return single_.network.layers; }
    bool last(int step) const { return step + 1 == options_.steps; }
    /// The whole network as the training begins: at its first weights, or as the checkpoint has it that it went on
    /// from. Gradients are those that wait for their update, if any do.
    std::unique_ptr<Program> model(int perturbation) const;
    /// The optimizer's step, what it keeps rounded to the type in which the schedule keeps it; rows of shared tables
    /// are updated by plain SGD.
    void update(Program& program) const;
    /// The mean over micro-batches of as many samples as the schedule of one rank has, from `first` and every `apart`
    /// further on, to the end of the batch.
    void sum_gradients(Program& program, int step, std::int64_t first, std::int64_t end, std::int64_t apart) const;
    Trained result(Program& program) const;
    /// The gradients of the mean loss of a shard's samples; of its micro-batch `micro_batch`, where that is given.
    std::vector<float> gradients_of_shard(Program& program, int step, std::int64_t shard,
                                          std::optional<int> micro_batch) const;
    /// Parts of the batch: the shards, and of a pipeline whose stages have copies the micro-batches of each that come
    /// so many turns after each other as all stages have their copies' in whole. Part p is of shard p / turns().
    std::int64_t turns() const;
    std::int64_t parts() const { return shards(schedule_.mesh) * turns(); }
    /// The gradients of the mean loss of a part's samples.
    std::vector<float> gradients_of_part(Program& program, int step, std::int64_t part) const;
    /// The parts whose samples are in the gradients that `rank` has of a bucket before ranks along `axis` bring theirs
    /// together.
    std::set<std::int64_t> parts_in(int axis, RankIndex rank) const;
    /// The gradients of each part, or of each shard's micro-batch `micro_batch`, and where a method sends bits that
    /// rounding may turn, likewise by weights that rounding has changed, once for each perturbation; of a training from
    /// changed weights, not.
    BatchGradients gradients_of_parts(Program& program, int step, std::optional<int> micro_batch,
                                      int perturbation) const;
    /// What a training follows of the bits that rounding decides.
    Followed followed(int perturbation) const { return {options_.sent, decided_, perturbation}; }
    /// A training by the gradient of the whole batch.
    Trained train_together(int perturbation) const;
    /// Whether weights are updated after each micro-batch.
    bool asynchronous() const;
    /// Puts the weights that each stage has for micro-batch m, of those `after` so many updates of this step.
    void put_stale_weights(Program& program, const std::vector<std::vector<float>>& after, int m) const;

private:
    void perturb(Program& program, std::uint64_t seed) const;
    /// Rounds weights and moments to the type in which the schedule's optimizer keeps them, of a program that computes
    /// in f32.
    void round_kept(Program& program) const;
    /// Of a number of samples of its own; for micro-batches of each size of uneven shares.
    struct Sized {
        explicit Sized(Schedule of) : schedule(std::move(of)) {}
        Schedule schedule;
        std::unique_ptr<Program> program{};
    };
    using BySize = std::map<std::int64_t, std::unique_ptr<Sized>>;
    Program& of_size(std::int64_t size, BySize& others) const;
    /// The mean over some of a shard's micro-batches: from `first` every `apart` further on, before `end`.
    std::vector<float> gradients_of_some(Program& program, int step, std::int64_t shard, std::int64_t first,
                                         std::int64_t end, std::int64_t apart) const;
    /// The mean over all samples of the batch, where copies have micro-batches of different sizes.
    void sum_gradients_of_shares(Program& program, int step, BySize& others) const;

    const Schedule& schedule_;
    const Schedule& single_;
    const ReferenceOptions& options_;
    mutable AllSent decided_;  // by the training from the first weights as they are, which is the first one
};

}  // namespace rehearse::run
