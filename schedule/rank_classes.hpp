// SPDX-License-Identifier: Apache-2.0
// The programs of a schedule's ranks: one a stage of the pipeline, and of it one for each number of samples.
#pragma once

#include <cstdint>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "schedule/axes/stages.hpp"
#include "schedule/plan.hpp"
#include "schedule/steps.hpp"

namespace rehearse::schedule {

const PipelineStrategy& strategy_of(const Plan& plan);

class ClassMaker {
public:
    /// `schedule` needs all but its classes and shares; its mesh gets the axes of the buckets. References are kept.
    ClassMaker(Schedule& schedule, const Plan& plan, const Machine& machine, std::vector<Stage> stages);

    /// The program at a place along the pipeline, on `batch` samples; 0: on the schedule's batch_per_rank.
    RankClass make(std::int64_t place, std::int64_t batch) const;
    int stages() const { return static_cast<int>(stages_.size()); }

    /// How many samples each copy along data gets: as the plan says, or so that all take as long. InputError where
    /// `batch`, of all copies, cannot be cut so.
    std::vector<std::int64_t> share_out(std::int64_t batch) const;

private:
    std::vector<std::int64_t> balanced(std::int64_t batch) const;
    void make_buckets_of(Stage& stage, Schedule& schedule);
    /// Ranks that have a stage, and the place along the pipeline of the first of them.
    int copies_of(StageIndex stage) const;
    std::int64_t first_place(StageIndex stage) const;
    /// The axis along which the gradients of each layer are summed.
    std::vector<int> axes_of(const Stage& stage, StageIndex own, bool along_data, Mesh& mesh) const;

    const Schedule& schedule_;
    const Plan& plan_;
    const Machine& machine_;
    std::vector<Stage> stages_;
    std::vector<StepOptions> options_;  // by stage
};

}  // namespace rehearse::schedule
